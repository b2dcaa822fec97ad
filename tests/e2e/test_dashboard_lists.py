"""Issues changed together, views saved and rules tested in a real browser, with JavaScript and without."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.e2e.browser import sign_in, watched_page
from tests.e2e.page_server import FULL, serving
from tests.unit.dashboard.sample import SHOWCASE, issue_of

LIST = f"/projects/{FULL}/issues"


@pytest.fixture
def address(clickhouse_url: str) -> Iterator[str]:
    with serving(clickhouse_url) as started:
        yield started


@pytest.mark.parametrize("javascript", [True, False])
def test_several_issues_are_changed_together(browser: Browser, address: str, javascript: bool) -> None:
    with watched_page(browser, javascript=javascript) as watched:
        page = watched.page
        sign_in(page, address)
        page.goto(f"{address}{LIST}?query=type:TypeError&sort=events&state=all")
        controls = page.get_by_role("form", name="Change the selected issues")
        assert controls.is_visible() is not javascript
        picks = page.locator('tbody input[name="issue"]')
        picks.nth(0).check()
        picks.nth(2).check()
        page.get_by_role("button", name="Ignore until reopened").click()
        expect(page.get_by_role("status")).to_contain_text("2 issues ignored.")
        expect(page.locator(".issues .badge.ignored")).to_have_count(2)
        assert page.locator("#query").input_value() == "type:TypeError"
        picks.nth(0).check()
        # Enter in the field of the assignee assigns: it is not the first of the other buttons.
        page.locator("#assignee").fill("ada")
        page.locator("#assignee").press("Enter")
        expect(page.get_by_role("status")).to_have_text("1 issue assigned.")
        expect(page.locator(".issues .badge.ignored")).to_have_count(2)
        assert watched.complaints == []


def test_all_of_a_page_are_selected_and_counted(browser: Browser, address: str) -> None:
    with watched_page(browser) as watched:
        page = watched.page
        sign_in(page, address)
        page.get_by_label("Select all issues on this page").check()
        expect(page.locator("[data-selected]")).to_have_text("25 selected:")
        assert watched.violations() == []
        page.locator('tbody input[name="issue"]').first.uncheck()
        expect(page.locator("[data-selected]")).to_have_text("24 selected:")
        page.get_by_label("Select all issues on this page").check()
        page.get_by_role("button", name="Resolve", exact=True).click()
        expect(page.get_by_role("status")).to_contain_text("25 issues resolved.")
        page.get_by_role("button", name="Undo").click()
        expect(page.get_by_role("status")).to_contain_text("25 issues reopened.")
        page.get_by_label("Select all issues on this page").check()
        page.get_by_label(re.compile("All [0-9]+ that match")).check()
        assert watched.violations() == []
        page.get_by_role("button", name="Ignore until reopened").click()
        expect(page.get_by_role("status")).to_contain_text(re.compile("[0-9]{3} issues ignored\\."))
        expect(page.get_by_role("heading", name="No open issues")).to_be_visible()
        page.get_by_role("button", name="Undo").click()
        expect(page.get_by_role("status")).to_contain_text("issues restored.")
        page.locator('tbody input[name="issue"]').first.check()
        page.get_by_label("Resolved in").select_option("in storefront-web@3.5.0+6972")
        page.get_by_role("button", name="Resolve", exact=True).click()
        expect(page.get_by_role("status")).to_contain_text("1 issue resolved in storefront-web@3.5.0+6972.")
        assert watched.violations() + watched.complaints == []


@pytest.mark.parametrize("path", [LIST, f"/issues/{issue_of(SHOWCASE)}/events", f"/projects/{FULL}/releases"])
def test_j_and_k_select_an_entry_of_a_list_and_enter_opens_it(
    browser: Browser, address: str, path: str
) -> None:
    with watched_page(browser) as watched:
        page = watched.page
        sign_in(page, address)
        page.goto(f"{address}{path}")
        entries = page.locator("a[data-entry]")
        for key, index in (("j", 0), ("j", 1), ("j", 2), ("k", 1), ("k", 0), ("k", 0), ("j", 1)):
            page.keyboard.press(key)
            expect(entries.nth(index)).to_be_focused()
        assert page.url == f"{address}{path}"
        assert watched.violations() == []
        wanted = entries.nth(1).get_attribute("href")
        page.keyboard.press("Enter")
        page.wait_for_url(f"{address}{wanted}")
        assert watched.complaints == []


def test_a_ticked_issue_is_where_j_goes_on(browser: Browser, address: str) -> None:
    with watched_page(browser) as watched:
        page = watched.page
        sign_in(page, address)
        page.locator('tbody input[name="issue"]').nth(3).check()
        page.keyboard.press("j")
        expect(page.locator("a[data-entry]").nth(4)).to_be_focused()


def test_a_phone_shows_the_first_issue_within_the_first_third(browser: Browser, address: str) -> None:
    with watched_page(browser, width=390) as watched:
        page = watched.page
        sign_in(page, address)
        box = page.locator("a[data-entry]").first.bounding_box()
        assert box is not None
        assert box["y"] <= page.evaluate("innerHeight") / 3
        # The whole label, in any font.
        for name in ("Environment", "Time range"):
            assert page.get_by_label(name, exact=True).evaluate("e => e.scrollWidth <= e.clientWidth")
        assert watched.complaints == []


def test_a_phone_shows_the_same_as_a_wide_screen(browser: Browser, address: str) -> None:
    with watched_page(browser, width=390) as watched:
        page = watched.page
        sign_in(page, address)
        for path, words in (
            (
                f"/issues/{issue_of(SHOWCASE)}/events",
                ["storefront-web@3.5.1+7012", "prod", "ios 18.5", "u_48213"],
            ),
            (f"/projects/{FULL}/releases", ["storefront-web@3.5.1+7012", "40", "1"]),
        ):
            page.goto(f"{address}{path}")
            row = page.get_by_role("row").filter(has_text="storefront-web@3.5.1+7012").first
            for word in words:
                cell = row.get_by_text(word, exact=True).first
                box = cell.bounding_box()
                assert box is not None
                assert box["x"] >= 0
                assert box["x"] + box["width"] <= 390
                assert cell.evaluate("e => e.closest('td').scrollWidth <= e.closest('td').clientWidth")
            assert (watched.overflow(), watched.violations(), watched.complaints) == (0, [], [])


@pytest.mark.parametrize("javascript", [True, False])
def test_new_events_of_an_issue_are_discarded_and_stored_again(
    browser: Browser, address: str, javascript: bool
) -> None:
    with watched_page(browser, javascript=javascript) as watched:
        page = watched.page
        sign_in(page, address)
        page.goto(f"{address}/issues/{issue_of(SHOWCASE)}")
        page.get_by_text("Discard new events…").click()
        page.get_by_role("button", name="Discard new events").click()
        expect(page.get_by_text("New events of this issue are dropped.")).to_be_visible()
        page.get_by_role("button", name="Store new events").click()
        expect(page.get_by_text("Discard new events…")).to_be_visible()
        assert watched.complaints == []


def test_the_way_back_from_an_issue_leads_to_the_list_as_it_was(browser: Browser, address: str) -> None:
    with watched_page(browser) as watched:
        page = watched.page
        sign_in(page, address)
        page.goto(f"{address}{LIST}?query=type:CheckoutError&state=all&range=30d&sort=events")
        page.locator("a[data-entry]").first.click()
        page.get_by_role("link", name="‹ Previous").click()
        page.get_by_role("link", name="All events").click()
        page.get_by_role("navigation", name="Breadcrumb").get_by_role("link", name="Issues").click()
        page.wait_for_url(f"{address}{LIST}?query=type:CheckoutError&state=all&range=30d&sort=events")
        assert watched.complaints == []


def click_in(page: Page, part: Locator, share: float) -> None:
    """Click at a share of the part's width, on the topmost element there."""
    part.scroll_into_view_if_needed()
    box = part.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + share * box["width"], box["y"] + box["height"] / 2)


def test_a_tapped_bar_says_its_figure_and_another_tap_ends_that(browser: Browser, address: str) -> None:
    with watched_page(browser, width=390) as watched:
        page = watched.page
        sign_in(page, address)
        caption = page.locator("[data-figure]")
        expect(caption).to_contain_text("Peak: ")
        bar = page.locator(".chart .column").last
        title = bar.locator("title").text_content()
        assert title is not None
        # Next to its middle, where a mark may be.
        click_in(page, bar, 0.2)
        expect(caption).to_have_text(title)
        page.get_by_role("heading", name="Issues").evaluate("node => node.click()")
        expect(caption).to_contain_text("Peak: ")
        assert watched.complaints == []


def test_a_row_of_events_is_one_link_and_the_links_of_an_issues_tags_can_be_hit(
    browser: Browser, address: str
) -> None:
    with watched_page(browser) as watched:
        page = watched.page
        sign_in(page, address)
        page.goto(f"{address}/issues/{issue_of(SHOWCASE)}")
        heights = page.locator(".tag-list .value a").evaluate_all(
            "links => links.map(link => link.getBoundingClientRect().height)"
        )
        assert heights
        assert min(heights) >= 24
        page.get_by_role("link", name="All events").click()
        click_in(page, page.locator("tbody tr").nth(2).locator("td").last, 0.5)
        expect(page).to_have_url(re.compile("/events/[0-9a-f-]{36}$"))
        assert watched.complaints == []
