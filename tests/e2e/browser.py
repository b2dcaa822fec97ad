"""A real browser, and pages that report all their errors."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import axe_playwright_python
from playwright.sync_api import Browser, Page, Playwright, StorageState, expect

from tests.browser_program import PROGRAMS
from tests.e2e.page_server import PASSWORD

AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]
PATIENCE_MS = 60_000
Scheme = Literal["light", "dark"]


def launch(playwright: Playwright) -> Browser:
    """An installed Chromium, else Playwright's own. Expectations have a long timeout for a busy machine."""
    expect.set_options(timeout=PATIENCE_MS)
    found = next(filter(None, map(shutil.which, PROGRAMS)), None)
    return playwright.chromium.launch(executable_path=found)


def sign_in(page: Page, address: str, name: str = "") -> None:
    """Open a session, which ends on the list of issues."""
    page.goto(f"{address}/sign-in")
    page.fill("#password", PASSWORD)
    page.fill("#name", name)
    page.click("button.primary")
    page.wait_for_url("**/issues")


class Watched:
    """A page and everything that it complained of."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.expected_statuses: set[int] = {200}
        page.expose_function("__svcViolation", self._complain)
        page.add_init_script(
            "document.addEventListener('securitypolicyviolation', e =>"
            " window.__svcViolation(`policy: ${e.violatedDirective} ${e.blockedURI}`))"
        )
        page.on("console", lambda message: self._console(message.type, message.text))
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.on("dialog", self._dialog)
        page.on("response", lambda response: self._response(response.status, response.url))
        page.on("requestfailed", lambda request: self.complaints.append(f"failed: {request.url}"))

    def _complain(self, sentence: str) -> None:
        self.complaints.append(sentence)

    def _console(self, kind: str, text: str) -> None:
        # The browser logs each answer that is an error; which are expected is known by their status.
        if kind in {"error", "warning"} and not text.startswith("Failed to load resource"):
            self.complaints.append(f"console: {text}")

    def _dialog(self, dialog: Any) -> None:
        self.complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _response(self, status: int, url: str) -> None:
        if status >= 400 and status not in self.expected_statuses:
            self.complaints.append(f"answer {status}: {url}")

    def violations(self) -> list[str]:
        """The violations that axe finds.

        It checks WCAG 2.1 A and AA, headings that skip a level, and targets that are too small or too close.
        """
        # By evaluate, not by a script element: the content policy forbids that, as it should.
        self.page.evaluate(AXE + ";0")
        found = self.page.evaluate(
            "rules => axe.run(document, {runOnly: rules,"
            " rules: {'heading-order': {enabled: true}, 'target-size': {enabled: true}},"
            " resultTypes: ['violations']})",
            RULES,
        )
        return [
            f"{one['id']}: {node['html'][:160]} {node.get('failureSummary', '')[:200]}"
            for one in found["violations"]
            for node in one["nodes"][:3]
        ]

    def overflow(self) -> int:
        """Pixels by which the page is wider than its window."""
        width: int = self.page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        return width


@contextmanager
def watched_page(
    browser: Browser,
    *,
    scheme: Scheme = "light",
    width: int = 1440,
    javascript: bool = True,
    session: StorageState | None = None,
    zone: str = "UTC",
) -> Iterator[Watched]:
    """A page in a new context."""
    context = browser.new_context(
        color_scheme=scheme,
        viewport={"width": width, "height": 900},
        java_script_enabled=javascript,
        storage_state=session,
        timezone_id=zone,
    )
    context.set_default_timeout(PATIENCE_MS)
    try:
        yield Watched(context.new_page())
    finally:
        context.close()
