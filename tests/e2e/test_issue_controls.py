"""An issue is resolved, opened again and commented on by the controls of its page, and snoozed from a message."""

import re

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.browser import sign_in, watched_page
from tests.e2e.page_server import PASSWORD, serving
from tests.unit.dashboard.sample import SHOWCASE, issue_of


@pytest.mark.parametrize("width", [pytest.param(1280, marks=pytest.mark.slow), 390])
def test_the_controls_change_the_issue_and_show_its_history(
    browser: Browser, clickhouse_url: str, width: int
) -> None:
    with serving(clickhouse_url) as address, watched_page(browser) as watched:
        page = watched.page
        page.set_viewport_size({"width": width, "height": 900})
        sign_in(page, address, "Ann Lee")
        page.goto(f"{address}/issues/{issue_of(SHOWCASE)}")
        page.locator(".event-bar summary").click()
        expect(page.get_by_role("button", name="Copy SQL")).to_be_in_viewport()
        page.locator(".event-bar summary").click()
        page.locator("summary", has_text="Ignore").click()
        page.get_by_role("button", name="Until 100 more events").click()
        expect(page.locator(".issue-head .badge.ignored")).to_be_visible()
        expect(page.get_by_role("status")).to_contain_text("Ignored until 100 more events.")
        page.get_by_role("button", name="Undo").click()
        expect(page.locator(".issue-head .badge.open")).to_be_visible()
        page.locator("summary", has_text="Ignore").click()
        page.get_by_role("button", name="Until tomorrow, 9:00").click()
        expect(page.locator(".issue-head .badge.ignored")).to_be_visible()
        page.get_by_role("button", name="Reopen").click()
        expect(page.locator(".issue-head .badge.open")).to_be_visible()
        page.locator("summary[aria-label='Resolve in a release']").click()
        page.get_by_role("button", name="In the next release").click()
        expect(page.locator(".issue-head .badge.resolved")).to_be_visible()
        expect(page.get_by_role("status")).to_contain_text("Resolved in the next release.")
        page.get_by_role("button", name="Reopen").click()
        page.locator("summary[aria-label='Resolve in a release']").click()
        offered = page.locator("#releases option").evaluate_all("all => all.map(one => one.value)")
        assert "storefront-web@3.5.0+6972" in offered
        page.get_by_label("In this release").fill("storefront-web@3.5.0+6972")
        page.get_by_label("In this release").press("Enter")
        expect(page.get_by_role("status")).to_contain_text("Resolved in storefront-web@3.5.0+6972.")
        newest = page.locator("ul.changes li").first
        expect(newest).to_contain_text("Resolved in storefront-web@3.5.0+6972")
        page.get_by_label("Comment").fill("<b>seen</b> in the cart")
        page.get_by_role("button", name="Comment").click()
        expect(page.locator("ul.changes li", has_text="<b>seen</b> in the cart")).to_contain_text("Ann Lee")
        page.get_by_role("button", name="Assign to me").click()
        expect(page.get_by_role("status")).to_contain_text("Assigned to Ann Lee.")
        expect(page.get_by_role("button", name="Assign to me")).to_have_count(0)
        page.get_by_label("Breadcrumb").get_by_role("link", name="Issues").click()
        page.get_by_role("link", name="All", exact=True).click()
        page.get_by_role("link", name="Assigned to me").click()
        expect(page.locator("table.issues tbody tr")).to_have_count(1)
        expect(page.locator(".assignee")).to_have_text("Ann Lee")


@pytest.mark.parametrize(
    ("width", "javascript"),
    [
        (1280, True),
        pytest.param(1280, False, marks=pytest.mark.slow),
        pytest.param(390, True, marks=pytest.mark.slow),
        (390, False),
    ],
)
def test_the_link_of_a_message_snoozes_its_issue_with_one_key(
    browser: Browser, clickhouse_url: str, width: int, *, javascript: bool
) -> None:
    issue = f"/issues/{issue_of(SHOWCASE)}"
    # The page says its times in UTC; without its script it doesn't know the reader's morning.
    morning = "03:30" if javascript else "09:00"
    with (
        serving(clickhouse_url) as address,
        watched_page(browser, width=width, javascript=javascript, zone="Asia/Kolkata") as watched,
    ):
        page = watched.page
        page.goto(f"{address}{issue}/snooze")
        page.fill("#password", PASSWORD)
        page.keyboard.press("Enter")
        page.wait_for_url(f"**{issue}/snooze")
        expect(page.get_by_role("button", name="Ignore until tomorrow, 9:00")).to_be_focused()
        expect(page.locator("main .badge.open")).to_be_visible()
        page.keyboard.press("Enter")
        page.wait_for_url(f"**{issue}?done=ignore&was=open")
        expect(page.get_by_role("status")).to_contain_text(re.compile(f"Ignored until .*{morning}"))
        page.goto(f"{address}{issue}/snooze")
        expect(page.get_by_role("status")).to_contain_text("Ignored until ")
        expect(page.get_by_role("link", name="Open the issue")).to_be_focused()
        assert watched.overflow() <= 0
        if javascript:  # axe is a script
            assert watched.violations() == []
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Reopen").click()
        expect(page.locator(".issue-head .badge.open")).to_be_visible()
        assert watched.complaints == []
