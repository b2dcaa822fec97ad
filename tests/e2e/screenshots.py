"""`make screenshots`: a picture of every page over the sample project.

Each page is taken in both colour schemes, on a wide screen and on a phone. With `--documents` it takes those
of `docs/images`.
"""

import re
import tempfile
from pathlib import Path
from typing import Any

import click
from playwright.sync_api import Page, sync_playwright

from local.clickhouse.local_clickhouse import LocalClickHouse
from tests.e2e.browser import Scheme, launch, sign_in, watched_page
from tests.e2e.page_server import serving
from tests.e2e.test_pages import ISSUE, PAGES

SCHEMES: tuple[Scheme, ...] = ("light", "dark")
WIDTHS = (1440, 390)


def narrowed(page: Page) -> None:
    """The issue with the events of one user."""
    page.get_by_role("link", name=re.compile("^u_")).first.click()


def ignoring(page: Page) -> None:
    """The menu of snoozes."""
    page.locator("summary", has_text="Ignore").click()


def resolving(page: Page) -> None:
    """The menu of where an issue can be resolved."""
    page.locator("summary[aria-label='Resolve in a release']").click()


def selecting(page: Page) -> None:
    """Two issues of the list selected, with the actions for both."""
    for number in (0, 1):
        page.locator("table.issues tbody input[type=checkbox]").nth(number).check()


def searching(page: Page) -> None:
    """Suggestions below the search box."""
    page.locator("#query").press_sequentially("environment:p")
    page.get_by_role("listbox", name="Suggestions").wait_for()


def previewing(page: Page) -> None:
    """The test of the rules on past activity, with a rule open."""
    page.get_by_role("button", name="Test on past activity").click()
    page.get_by_role("heading", name="Test result").wait_for()
    page.locator(".notification-rule > summary").nth(1).click()


STATES: dict[str, tuple[str, Any]] = {
    "issue narrowed": (ISSUE, narrowed),
    "issue ignoring": (ISSUE, ignoring),
    "issue resolving": (ISSUE, resolving),
    "issues selected": (PAGES["issues"][0], selecting),
    "notifications previewed": (PAGES["notifications"][0], previewing),
    "issues searching": (PAGES["issues"][0], searching),
}
"""Pages after an action."""


Shot = tuple[str, str, Any, Scheme, int, int | None]
"""Name, path, action, colour scheme, width, and height if it isn't the whole page."""
_RELEASES = "before=chat@3.5.0%2B6972&after=chat@4.0.1%2B6059"
DOCUMENTED: tuple[Shot, ...] = (
    ("issue", ISSUE, None, "light", 1200, 980),
    ("issue-dark", ISSUE, None, "dark", 1200, 980),
    ("issue-ignore", ISSUE, ignoring, "light", 1200, 760),
    ("issue-phone", ISSUE, None, "light", 390, 844),
    ("issues", f"{PAGES['issues'][0]}?sort=events", None, "light", 1200, 760),
    ("releases", f"{PAGES['releases'][0]}?{_RELEASES}", None, "light", 1200, 760),
)
IMAGES = Path(__file__).parents[2] / "docs/images"


def every_page() -> list[Shot]:
    """Each page and state, in each scheme and width."""
    wanted = {name: (path, None) for name, (path, _) in PAGES.items()} | STATES
    return [
        (f"{name.replace(' ', '-')}-{scheme}-{width}", path, act, scheme, width, None)
        for scheme in SCHEMES
        for width in WIDTHS
        for name, (path, act) in wanted.items()
    ]


@click.command()
@click.option(
    "--to",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(".cache/screenshots"),
    show_default=True,
)
@click.option("--documents", is_flag=True, help="Write the pictures of docs/images, and no others.")
def screenshots(folder: Path, documents: bool) -> None:
    """Write the pictures as PAGE-SCHEME-WIDTH.png."""
    shots, folder = (list(DOCUMENTED), IMAGES) if documents else (every_page(), folder)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as data:
        server = LocalClickHouse(Path(data) / "clickhouse").start(120)
        try:
            with serving(server.url(), tame=documents) as address, sync_playwright() as playwright:
                browser = launch(playwright)
                with watched_page(browser) as watched:
                    sign_in(watched.page, address, "Ann Lee")
                    session = watched.page.context.storage_state()
                for name, path, act, scheme, width, height in shots:
                    who = None if name.startswith("sign-in-") else session
                    with watched_page(browser, scheme=scheme, width=width, session=who) as watched:
                        if height is not None:
                            watched.page.set_viewport_size({"width": width, "height": height})
                        watched.page.goto(address + path)
                        if act is not None:
                            act(watched.page)
                        watched.page.screenshot(path=folder / f"{name}.png", full_page=height is None)
                browser.close()
        finally:
            server.stop()
    click.echo(f"{len(shots)} pictures in {folder}")


if __name__ == "__main__":
    screenshots()
