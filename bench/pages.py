"""The latency and size of pages over a store of any size, as a browser on the same machine asks for them.

    python -m bench.pages --events 10000000 --directory DIR        # the store of `python -m bench.storage_read`; built if it is missing

The dashboard runs in this process, with a session; ms are by the clock from the request to the last byte. Targets are those of p95.
"""

import asyncio
import gzip
import time
from pathlib import Path
from typing import Final

import aiohttp
import click
from aiohttp import web
from msgspec.structs import replace

from bench.storage_read import middle_and_high, prepared, served
from bench.storage_read_data import PROJECTS
from control.project_edits import create
from dashboard.app import build_app, build_runner
from dashboard.dependencies import Dependencies
from schemas.settings import DashboardSettings
from storage.client import open_client, scalar
from storage.migrations.migrate import migrate
from storage.reader.event_calls import ListIssueEvents
from storage.reader.execute import Executor, Limits
from storage.reader.issue_list import ListIssues
from storage.reader.reader import Reader
from tests.unit.dashboard.projects import MemoryProjects
from tests.unit.dashboard.site import PASSWORD

_BIG, _MIDDLE = 1, 2
_TARGETS: Final = {"list": 300, "event": 100}


async def _pages(reader: Reader, project: int) -> dict[str, str]:
    """Paths by name: the list in its forms, and the project's largest issue with one of its newest events."""
    largest = (await reader.read(ListIssues(project, sort="events"))).issues[0]
    newest = await reader.read(ListIssueEvents(largest.id, limit=10))
    listed, word = f"/projects/{project}/issues", largest.message.split()[0]
    return {
        "list": listed,
        "list by events, 90 days": f"{listed}?sort=events&range=90d",
        "list, a word": f"{listed}?query={word}",
        "list, a tag": f"{listed}?query=feature:f3",
        "event": f"/issues/{largest.id}/events/{newest.events[5].id}",
        "issue": f"/issues/{largest.id}",
        "events of the issue": f"/issues/{largest.id}/events",
        "releases": f"/projects/{project}/releases",
        "outcomes": f"/projects/{project}/outcomes",
    }


async def _measure(url: str, now_ms: int, repeats: int) -> None:
    reader = Reader(Executor([url], Limits()), now_ms=lambda: now_ms)
    projects = [
        replace(create(f"project {number}", now_ms=now_ms), id=str(number))
        for number in range(1, PROJECTS + 1)
    ]
    settings = DashboardSettings(admin_password=PASSWORD, kafka_bootstrap="unused:1", clickhouse_url=url)
    runner = build_runner(
        build_app(settings, Dependencies(reader, MemoryProjects(*projects), lambda: now_ms))
    )
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    base = f"http://127.0.0.1:{runner.addresses[0][1]}"
    jar = aiohttp.CookieJar(unsafe=True)
    async with aiohttp.ClientSession(
        base, auto_decompress=False, cookie_jar=jar, raise_for_status=True
    ) as http:
        await http.post("/sign-in", data={"password": PASSWORD}, allow_redirects=False)
        for project in (_MIDDLE, _BIG):
            print(f"\nproject {project}\n{'':<28}{'p50':>8}{'p95':>8}{'target':>8}{'kB':>8}{'as sent':>9}")
            for name, path in (await _pages(reader, project)).items():
                times, body = [], b""
                for _ in range(repeats + 1):
                    began = time.perf_counter()
                    async with http.get(path, headers={"Accept-Encoding": "gzip"}) as answer:
                        body = await answer.read()
                    times.append((time.perf_counter() - began) * 1000)
                half, high = middle_and_high(times[1:])
                plain = len(gzip.decompress(body))
                print(
                    f"{name:<28}{half:>8.1f}{high:>8.1f}{_TARGETS.get(name, ''):>8}{plain / 1000:>8.1f}{len(body) / 1000:>9.1f}",
                    flush=True,
                )
    await runner.cleanup()
    await reader.close()


@click.command()
@click.option("--url", default="", help="as SVC_CLICKHOUSE_URL; without it a local server is started")
@click.option("--directory", type=click.Path(path_type=Path), help="where the local server's data stay")
@click.option("--events", default=1_000_000, show_default=True)
@click.option("--repeats", default=40, show_default=True, help="of each page, after a first one")
def main(url: str, directory: Path | None, events: int, repeats: int) -> None:
    """Build the store if it is missing, and measure."""
    with served(url, directory) as address:
        migrate(address)
        client = open_client(address, send_receive_timeout=3600)
        prepared(client, events)
        now_ms = 1 + int(scalar(client, "SELECT toUnixTimestamp64Milli(max(ts)) FROM events"))
        client.close()
        asyncio.run(_measure(address, now_ms, repeats))


if __name__ == "__main__":
    main()
