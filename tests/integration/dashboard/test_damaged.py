"""A stored event that can't be read is shown as damaged, and its neighbours are still reached.

Bytes that aren't HTTP are answered with a declared error.
"""

import asyncio
import json
import re

import pytest
from aiohttp import web

from dashboard.dashboard_app import build_app, build_runner
from dashboard.dependencies import Dependencies
from storage.read.reader import Reader
from tests.integration.dashboard.stored_site import StoredSite
from tests.unit.dashboard.projects import MemoryProjects
from tests.unit.dashboard.sample import SHOWCASE, issue_of
from tests.unit.dashboard.site import NOW, NOWHERE, SETTINGS

pytestmark = pytest.mark.usefixtures("sample_stored")

ISSUE = f"/issues/{issue_of(SHOWCASE)}"


async def damage(site: StoredSite) -> tuple[str, str, str]:
    """The ids of three events in a row; the middle one is damaged."""
    rows = (await site.api("GET", f"{ISSUE}/events?limit=3"))[1]["events"]
    newer, middle, older = (row["id"] for row in rows)
    site.store.damage(middle)
    return older, middle, newer


async def test_a_damaged_event_is_a_declared_error_that_names_its_neighbours(site: StoredSite) -> None:
    older, middle, newer = await damage(site)
    for path in (f"{ISSUE}/events/{middle}", f"/projects/{site.project.id}/events/{middle}"):
        status, body = await site.api("GET", path)
        assert (status, body["error"]) == (502, "damagedPayload")
        assert {one["field"]: one["message"] for one in body["details"]} == {
            "previousEventId": older,
            "nextEventId": newer,
        }
    for neighbour, field in ((older, "nextEventId"), (newer, "previousEventId")):
        status, body = await site.api("GET", f"{ISSUE}/events/{neighbour}")
        assert (status, body[field]) == (200, middle)
    metrics = await (await site.client.get("/metrics")).text()
    assert "svc_dashboard_damaged_payloads_total 2.0" in metrics


async def test_the_page_of_a_damaged_event_leads_on(site: StoredSite) -> None:
    older, middle, newer = await damage(site)
    await site.sign_in()
    answer = await site.client.get(f"{ISSUE}/events/{middle}")
    page = await answer.text()
    assert answer.status == 200
    assert "The content of this event is damaged" in page
    assert set(re.findall(r'rel="(?:prev|next)" href="[^"]+/([0-9a-f-]{36})"', page)) == {older, newer}
    metrics = await (await site.client.get("/metrics")).text()
    assert "svc_dashboard_damaged_payloads_total 1.0" in metrics


async def page_with(site: StoredSite, content: str) -> tuple[str, str]:
    """An event's path, and its page once its stored content is this."""
    _, middle, _ = await damage(site)
    site.store.damage(middle, content)
    await site.sign_in()
    path = f"{ISSUE}/events/{middle}"
    return path, await (await site.client.get(path)).text()


async def test_content_that_is_no_object_is_damaged_and_not_expired(site: StoredSite) -> None:
    _, page = await page_with(site, "[1]")
    assert "The content of this event is damaged" in page
    assert "has expired" not in page


async def test_numbers_out_of_range_are_shown_as_they_were_sent(site: StoredSite) -> None:
    content = '{"error":{"type":"E","message":"m","stack":[]},"ratio":-1E+400}'
    path, page = await page_with(site, content)
    assert "-1E+400" in page
    assert '"ratio":-1E+400' in await (await site.client.get(f"/api/v1{path}")).text()


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET /api/v1/projects HTTP/1.1\r\nHost: x\r\nbad header\r\n\r\n",
        b"GET /api/v1/projects HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 70_000 + b"\r\n\r\n",
        b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /api/v1/projects HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"G\x00T / HTTP/1.1\r\n\r\n",
    ],
)
async def test_malformed_http_is_answered_in_the_one_error_shape(sent: bytes) -> None:
    runner = build_runner(
        build_app(SETTINGS, Dependencies(Reader.open([NOWHERE]), MemoryProjects(), lambda: NOW))
    )
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    reader, writer = await asyncio.open_connection("127.0.0.1", runner.addresses[0][1])
    writer.write(sent)
    async with asyncio.timeout(60):
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    await runner.cleanup()
    assert head.split(b" ")[1] == b"400"
    assert b"application/json" in head
    assert b"X-Content-Type-Options: nosniff" in head
    assert b"Server: svc\r\n" in head
    assert json.loads(body) == {
        "error": "validationFailed",
        "details": [{"field": "request", "message": "malformed HTTP request"}],
    }
