"""The search box suggests keys, values and states, and keys of the keyboard act on the list."""

from playwright.sync_api import Browser, expect

from tests.e2e.browser import sign_in, watched_page
from tests.e2e.page_server import FULL


def test_a_term_is_completed_and_the_list_is_worked_off_by_keys(browser: Browser, address: str) -> None:
    with watched_page(browser) as watched:
        page = watched.page
        sign_in(page, address)
        options = page.get_by_role("listbox", name="Suggestions").get_by_role("option")
        page.keyboard.press("/")
        page.keyboard.type("envi")
        expect(options).to_have_text(["environment"])
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        expect(page.locator("#query")).to_have_value("environment:")
        expect(options.filter(has_text="prod")).to_be_visible()
        assert watched.violations() == []
        page.keyboard.type("pr")
        options.filter(has_text="prod").click()
        expect(page.locator("#query")).to_have_value("environment:prod")
        page.keyboard.type(" is:reg")
        expect(options).to_have_text(["regressed"])
        page.keyboard.press("Escape")
        expect(options).to_have_count(0)
        page.goto(f"{address}/projects/{FULL}/issues")
        page.keyboard.press("?")
        expect(page.get_by_text("resolve or ignore the selected issues")).to_be_visible()
        for key in ("j", "x", "j", "x"):
            page.keyboard.press(key)
        expect(page.locator("[data-selected]")).to_have_text("2 selected:")
        page.keyboard.press("r")
        expect(page.get_by_role("status")).to_contain_text("2 issues resolved.")
        assert watched.complaints == []
