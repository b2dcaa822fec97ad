"""The pages in a real browser: nothing is logged as wrong, nothing runs that was sent, everyone can read them."""

import itertools
import re

import pytest
from playwright.sync_api import Browser, Route, StorageState, expect

from broker.pipeline_lag import Behind, Lag
from tests.e2e.browser import Scheme, sign_in, watched_page
from tests.e2e.page_server import EMPTY, FULL, LAG, PASSWORD, now_ms
from tests.unit.dashboard.sample import HOSTILE, SHOWCASE, issue_of

ISSUE = f"/issues/{issue_of(SHOWCASE)}"
NASTY_ISSUE = f"/issues/{issue_of(HOSTILE)}"
PAGES = {
    "sign-in": ("/sign-in", 200),
    "issues": (f"/projects/{FULL}/issues", 200),
    "filtered issues": (f"/projects/{FULL}/issues?query=type:TypeError&state=open&range=7d&sort=events", 200),
    "issues of an own range": (f"/projects/{FULL}/issues?start=2026-01-01T00:00&end=2026-01-02T00:00", 200),
    "a query that is none": (f"/projects/{FULL}/issues?query=a:(", 400),
    "first steps": (f"/projects/{EMPTY}/issues", 200),
    "issue": (ISSUE, 200),
    "hostile issue": (NASTY_ISSUE, 200),
    "snooze": (f"{ISSUE}/snooze", 200),
    "hostile snooze": (f"{NASTY_ISSUE}/snooze", 200),
    "events": (f"{NASTY_ISSUE}/events", 200),
    "releases": (f"/projects/{FULL}/releases", 200),
    "outcomes": (f"/projects/{FULL}/outcomes", 200),
    "rules": (f"/projects/{FULL}/rules", 200),
    "notifications": (f"/projects/{FULL}/notifications", 200),
    "first notification rule": (f"/projects/{EMPTY}/notifications", 200),
    "settings": (f"/projects/{FULL}/settings", 200),
    "keys": (f"/projects/{FULL}/keys", 200),
    "keys of all projects": ("/keys", 200),
    "source maps": (f"/projects/{EMPTY}/source-maps", 200),
    "projects": ("/projects", 200),
    "new project": ("/projects/new", 200),
    "nothing": ("/projects/99/issues", 404),
}


@pytest.fixture(scope="module")
def session(browser: Browser, address: str) -> StorageState:
    """The cookie of someone who signed in."""
    with watched_page(browser) as watched:
        sign_in(watched.page, address)
        return watched.page.context.storage_state()


@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        (1440, "light"),
        pytest.param(1440, "dark", marks=pytest.mark.slow),
        pytest.param(390, "light", marks=pytest.mark.slow),
        (390, "dark"),
    ],
)
def test_every_page_is_quiet_accessible_and_fits(
    browser: Browser, address: str, session: StorageState, scheme: Scheme, width: int
) -> None:
    found = {}
    for name, (path, status) in PAGES.items():
        who = None if name == "sign-in" else session
        with watched_page(browser, scheme=scheme, width=width, session=who) as watched:
            watched.expected_statuses = {status}
            answer = watched.page.goto(address + path)
            watched.page.wait_for_load_state("load")
            assert answer is not None
            assert answer.status == status
            wrong = watched.violations() + watched.complaints
            if watched.overflow() > 0:
                wrong.append(f"{watched.overflow()} px too wide")
            found[name] = wrong
    bad = [f"{name}: {one}" for name, wrong in found.items() for one in wrong]
    assert not bad, "\n".join(bad)


def test_a_person_goes_from_the_sign_in_to_the_previous_event(browser: Browser, address: str) -> None:
    with watched_page(browser) as watched:
        page = watched.page
        watched.expected_statuses = {401}
        page.goto(f"{address}{ISSUE}")
        expect(page).to_have_url(f"{address}/sign-in?next={ISSUE}")
        page.fill("#password", "wrong")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_have_text("Wrong password.")
        page.fill("#password", PASSWORD)
        page.keyboard.press("Enter")
        expect(page).to_have_url(f"{address}{ISSUE}")
        expect(page.get_by_role("heading", level=1)).to_have_text(re.compile("payment was not taken"))
        latest = page.locator(".event-id").inner_text()
        page.get_by_role("link", name="‹ Previous").click()
        expect(page.locator(".event-id")).not_to_have_text(latest)
        page.get_by_role("link", name="Next ›").click()
        expect(page.locator(".event-id")).to_have_text(latest)
        # The text is there before the script that handles keys has run.
        page.wait_for_load_state()
        page.keyboard.press("k")
        expect(page.locator(".event-id")).not_to_have_text(latest)
        page.get_by_role("navigation", name="Project").get_by_role("link", name="Issues").click()
        page.wait_for_url("**/issues")
        page.keyboard.press("/")
        page.keyboard.type('feature:checkout "in time"')
        page.keyboard.press("Enter")
        expect(page.locator(".issues tbody tr")).to_have_count(1)
        page.get_by_role("link", name="payment was not taken").click()
        # The query stays with the issue.
        expect(page).to_have_url(re.compile(f"^{address}{ISSUE}\\?query=feature"))
        expect(page.get_by_role("status")).to_contain_text("of this issue match")
        page.get_by_role("link", name="‹ Previous").click()
        expect(page).to_have_url(re.compile("query=feature"))
        page.get_by_role("link", name="All events of this issue").click()
        expect(page).to_have_url(f"{address}{ISSUE}")
        assert watched.complaints == []


def test_hostile_text_is_shown_and_does_nothing(
    browser: Browser, address: str, session: StorageState
) -> None:
    with watched_page(browser, session=session) as watched:
        page = watched.page
        page.goto(address + NASTY_ISSUE)
        expect(page.get_by_role("heading", level=1)).to_contain_text("<script>alert(1)</script>")
        assert page.locator("main img, main script").count() == 0
        assert "\u202e" not in page.inner_text("main")
        page.get_by_text("Show all 150,088 characters").first.click()
        assert watched.complaints == []


def test_pages_read_without_javascript(browser: Browser, address: str, session: StorageState) -> None:
    with watched_page(browser, javascript=False, session=session) as watched:
        page = watched.page
        page.goto(f"{address}/projects/{FULL}/issues?query=type:CheckoutError")
        page.get_by_role("link", name="payment was not taken").click()
        expect(page.get_by_text("payment was not taken").first).to_be_visible()
        page.get_by_text("3 frames from libraries and the runtime").click()
        expect(page.get_by_text("invokeGuardedCallback")).to_be_visible()
        expect(page.get_by_role("button", name="Copy")).to_have_count(0)


def test_tokens_are_made_and_revoked_by_hand(browser: Browser, address: str, session: StorageState) -> None:
    with watched_page(browser, session=session) as watched:
        page = watched.page
        page.goto(f"{address}/projects/{EMPTY}/settings")
        tokens = page.locator(".tokens > li")
        page.get_by_role("button", name="New token").click()
        expect(tokens).to_have_count(2)
        tokens.nth(1).get_by_text("Revoke…").click()
        tokens.nth(1).get_by_role("button", name="Revoke this token").click()
        expect(tokens.nth(1).get_by_text("revoked", exact=True)).to_be_visible()
        page.fill("#rateLimitPerMinute", "none")
        watched.expected_statuses = {400}
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_role("alert")).to_have_text("must be a whole number")
        page.fill("#rateLimitPerMinute", "120")
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_role("status")).to_contain_text("Saved")
        expect(page.locator("#rateLimitPerMinute")).to_have_value("120")
        assert watched.complaints == []


def test_faults_and_previews_of_notification_rules_are_accessible_on_a_phone(
    browser: Browser, address: str, session: StorageState
) -> None:
    with watched_page(browser, session=session, width=390) as watched:
        page = watched.page
        page.goto(f"{address}/projects/{FULL}/notifications")
        page.locator(".notification-rule > summary").first.click()
        query = page.get_by_label("Only issues where").first
        query.fill("timeout")
        watched.expected_statuses = {400}
        page.get_by_role("button", name="Save").click()
        expect(page.locator("#r0-query-error")).to_be_visible()
        assert (watched.violations(), watched.overflow()) == ([], 0)
        query.fill("environment:production")
        watched.expected_statuses = {200}
        page.get_by_role("button", name="Test on past activity").click()
        expect(page.locator("#test")).to_contain_text(re.compile("[1-9][0-9]* messages"))
        assert (watched.violations(), watched.overflow()) == ([], 0)
        assert watched.complaints == []


def test_first_steps_give_way_to_the_first_issue(
    browser: Browser, address: str, session: StorageState
) -> None:
    with watched_page(browser, session=session) as watched:
        page = watched.page
        page.goto(f"{address}/projects/{EMPTY}/issues")
        for block in ("#curl", "#install"):
            assert "svc_pk_" in page.locator(block).inner_text()
        assert page.locator("#install").inner_text().startswith("python3 -m venv .venv")
        program = page.locator("#program-3")
        expect(program).to_be_hidden()
        page.get_by_text("Flask", exact=True).click()
        expect(program).to_contain_text("svc.flask.watch(app)")
        expect(page.locator("#program-1")).to_be_hidden()
        assert watched.violations() == []
        # The browser answers the script's request as if an issue had come.
        page.route("**/api/v1/projects/*/issues?limit=1", lambda route: route.fulfill(json={"issues": [{}]}))
        with page.expect_navigation():
            expect(page.locator(".waiting")).to_have_text(re.compile("Your first event has arrived"))
        assert watched.complaints == []


def test_a_link_to_an_issue_that_is_not_stored_yet_leads_to_it(
    browser: Browser, address: str, session: StorageState
) -> None:
    with watched_page(browser, session=session) as watched:
        page, looks = watched.page, itertools.count()

        def answer(route: Route) -> None:
            if next(looks) == 0:
                route.fulfill(response=route.fetch(url=f"{address}/issues/00000000000000ff"))
            else:
                route.continue_()

        page.route(f"{address}{ISSUE}", answer)
        page.goto(f"{address}{ISSUE}")
        heading = page.get_by_role("heading", level=1)
        expect(heading).to_have_text("Not found")
        assert watched.violations() == []
        expect(heading).not_to_have_text("Not found")


def test_a_page_says_that_events_wait_follows_them_and_is_loaded_again_once_they_are_stored(
    browser: Browser, address: str, session: StorageState
) -> None:
    with watched_page(browser, session=session) as watched:
        page = watched.page
        LAG.lag = Lag(is_known=True, behind=Behind(now_ms() - 155_000, 149))
        page.goto(f"{address}/projects/{FULL}/issues")
        line = page.locator("[data-behind]")
        expect(line).to_contain_text("About 2 min behind")
        assert watched.violations() == []
        LAG.lag = Lag(is_known=True, behind=Behind(now_ms() - 31_000, 9))
        expect(line).to_contain_text(re.compile("About 3. s behind"))
        page.locator('input[name="issue"]').first.check()
        LAG.lag = Lag(is_known=True)
        # A selection stays, so the reader is asked.
        expect(line).to_contain_text("All events are stored now.")
        expect(page.locator('input[name="issue"]').first).to_be_checked()
        line.get_by_role("link", name="Show them").click()
        expect(line).to_have_count(0)
        LAG.lag = Lag(is_known=True, behind=Behind(now_ms() - 31_000, 9))
        page.goto(f"{address}{ISSUE}")
        expect(line).to_have_count(1)
        LAG.lag = Lag(is_known=True)
        expect(line).to_have_count(0)
        assert watched.complaints == []
