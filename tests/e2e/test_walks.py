"""The way of a user, from the crash of an application to a fix that fails too.

A message arrives, and its link leads to the line that failed. The fix is deployed and fails.
"""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect, sync_playwright

from local.local_stack import Stack
from runtime.supervisor import Supervisor
from tests.e2e.browser import launch, watched_page
from tests.e2e.whole_stack import project_of, session_of
from tests.eventually import eventually
from tests.examples import RELEASE, WEB, shop, status
from tests.integration.notify.mail_server import MailServer
from tests.webhook_receiver import Receiver

# The loop of the stack.
pytestmark = pytest.mark.asyncio(loop_scope="package")
NEXT = "shop@1.5.0+330"


def resolved_by_clicking(link: str, password: str, route: str) -> None:
    """Sign in on the way to the issue, look at the error, and resolve it in the next release."""
    with sync_playwright() as playwright:
        browser = launch(playwright)
        with watched_page(browser) as watched:
            page = watched.page
            # The message is quicker than the store: until then the page says so, and loads itself again.
            watched.expected_statuses = {404}
            page.goto(link)
            page.fill("#password", password)
            page.click("button.primary")
            page.wait_for_url(link)
            expect(page.get_by_role("heading", level=1)).to_have_text("LookupError: no such order")
            watched.expected_statuses = {200}
            expect(page.locator(".frame.own tr.place").first).to_contain_text(
                'raise LookupError("no such order")'
            )
            for key, value in (("route", route), ("method", "GET")):
                expect(page.locator(".chip", has=page.get_by_text(key, exact=True))).to_have_text(
                    f"{key}{value}"
                )
            page.locator("summary[aria-label='Resolve in a release']").click()
            choice = page.get_by_role("button", name="In the next release")
            expect(choice).to_contain_text(f"after {RELEASE}")
            choice.click()
            expect(page.locator(".issue-head .badge.resolved")).to_be_visible()
            expect(page.get_by_role("status")).to_contain_text("Resolved in the next release.")
            assert watched.complaints == []
        browser.close()


@pytest.mark.parametrize(
    "name", [name if name == "fastapi_app" else pytest.param(name, marks=pytest.mark.slow) for name in WEB]
)
async def test_a_crash_is_a_message_its_link_leads_to_the_line_and_the_failed_fix_is_a_message_again(
    running: tuple[Stack, Supervisor], inboxes: tuple[MailServer, Receiver], tmp_path: Path, name: str
) -> None:
    stack, _ = running
    mails, posts = inboxes
    project = await project_of(stack)
    reader = f"{name}@example.com"
    rule = {"name": name, "causes": ["created", "regressed"], "channels": ["mail", "hook"], "to": [reader]}
    environ = {"SVC_TOKEN": project.token, "SVC_INGEST_URL": stack.ingest_url}

    @asynccontextmanager
    async def crashed(release: str) -> AsyncIterator[None]:
        """The application runs, and has crashed in a request."""
        with shop(name, tmp_path, environ, release) as address:
            assert await eventually(lambda: asyncio.to_thread(status, f"{address}/orders/6")) == 200
            assert await asyncio.to_thread(status, f"{address}/orders/7") == 500
            yield

    async def mailed(title: str) -> str:
        def found() -> list[str]:
            return [
                mail.get_body().get_content()  # type: ignore[union-attr]
                for to, mail in mails.mails
                if to == [reader] and title in mail["Subject"]
            ]

        return (await eventually(found))[0]

    async def posted(kind: str) -> dict[str, Any]:
        def found() -> list[dict[str, Any]]:
            causes = [
                cause
                for message in posts.messages.values()
                if message["project"]["id"] == project.id
                for cause in message["causes"]
            ]
            return [cause for cause in causes if cause["kind"] == kind]

        return (await eventually(found))[0]

    async with session_of(stack) as session:
        path = f"/api/v1/projects/{project.id}"
        answer = await session.put(f"{path}/notification-rules", json={"rules": [rule]})
        assert answer.status == 200
        async with crashed(RELEASE):
            text = await mailed("New issue: LookupError: no such order")
            created = await posted("created")
        assert "LookupError: no such order" in text
        assert f"{RELEASE} · " in text
        (link,) = re.findall(rf"{stack.dashboard_url}/issues/[0-9a-f]{{16}}(?!/snooze)", text)
        assert created["issue"]["url"] == link
        await asyncio.to_thread(resolved_by_clicking, link, stack.dashboard.admin_password, WEB[name][0])
        async with crashed(NEXT):
            text = await mailed("Regressed: LookupError: no such order")
            regressed = await posted("regressed")
        assert f"came back in release {NEXT}" in text
        assert (regressed["issue"]["url"], regressed["value"]) == (link, NEXT)
        undelivered = await session.get(f"{path}/notifications")
        assert await undelivered.json() == {"channels": ["hook", "mail"], "messages": []}
        previewed = await session.post(f"{path}/notification-rules:preview", json={"rules": [rule]})
        causes = [one["causes"][0]["kind"] for one in (await previewed.json())["messages"]]
        assert causes == ["regressed", "created"]
