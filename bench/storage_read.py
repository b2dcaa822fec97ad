"""The latency of each read call, compared with its statements through the bare driver in the same run.

    python -m bench.storage_read --events 1000000                    # 100000000: half an hour to build
    python -m bench.storage_read --events 10000000 --directory DIR   # the data stay in DIR and are reused

A local ClickHouse is started, with 4 GiB at most. Figures are medians and 95th percentiles in ms: `bare` is
the call's statements one after the other by clickhouse-connect alone, the floor; the CPU is Python's and the
server's. A target is a p95, for the project with 7 % and for the one with 26 % of all events.
"""

import asyncio
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import click
from msgspec import Struct

from bench.servers import kept_or_temporary
from bench.storage_read_data import build, settle, sizes
from local.clickhouse.local_clickhouse import LocalClickHouse
from storage.client import Client, open_client, scalar
from storage.errors import QueryTooExpensive, StorageUnavailable
from storage.read.counts.count_calls import GetIssueStats, GetProjectStats
from storage.read.counts.range_counts import issue_counts
from storage.read.counts.tag_calls import CountIssueTags
from storage.read.events.event_calls import ListIssueEvents
from storage.read.events.event_detail import GetIssueEvent, GetProjectEvent
from storage.read.execute import Executor, Limits, Rows, Sql
from storage.read.issue_rows import IssueRow
from storage.read.issues import issue_list
from storage.read.issues.issue_list import ListIssues
from storage.read.reader import ReadCall, Reader, Session
from storage.tables.migrations.migrate import migrate

Call = Callable[[], Awaitable[object]]
_BIG, _MIDDLE = 1, 2
_CPU: Final = """
SELECT sum(ProfileEvents['OSCPUVirtualTimeMicroseconds']), sum(read_rows), max(memory_usage)
FROM system.query_log
WHERE type = 'QueryFinish' AND event_time_microseconds >= fromUnixTimestamp64Micro({since:Int64})
    AND event_time_microseconds < fromUnixTimestamp64Micro({until:Int64}) AND query NOT LIKE '%query_log%'
"""


class Recorder(Executor):
    """An executor that records its statements."""

    def __init__(self, url: str, limits: Limits) -> None:
        super().__init__([url], limits)
        self.seen: list[Sql] = []

    async def rows(self, sql: Sql) -> Rows:
        """The rows of an answer."""
        self.seen.append(sql)
        return await super().rows(sql)


class Measured(Struct, frozen=True):
    """A call and its targets for the two projects."""

    name: str
    call: Call
    target: tuple[int, int]


async def calls(reader: Reader, session: Session, project: int) -> list[Measured]:
    """The calls. The issue is the project's largest, the event one of its newest."""
    page = await reader.read(ListIssues(project, sort="events"))
    issue = page.issues[0].id
    newest = await reader.read(ListIssueEvents(issue, limit=10))
    event = newest.events[5].id
    # A message is like `Cannot read a b while saving c 123`.
    before, after = page.issues[20].message.split(" while ", 1)
    *_, first, second = before.split()
    part = f'"{first[1:]} {second[:-1]}*{after.split()[1][1:]}"'
    question = session.question(project)
    rows = [
        IssueRow(*columns)
        for _, *columns in await session.rows(issue_list.page_by_row(question, "lastSeen", 50, None))
    ]
    figures = issue_counts(question, {row.issue_id: row.fingerprints for row in rows})
    reads: dict[str, tuple[ReadCall[Any], tuple[int, int]]] = {
        "issues": (ListIssues(project), (20, 25)),
        "series of the project": (GetProjectStats(project), (10, 15)),
        "series of an issue": (GetIssueStats(issue), (10, 15)),
        "event by id, with its neighbours": (GetIssueEvent(issue, event), (20, 25)),
        "event of the project by id": (GetProjectEvent(project, event), (20, 25)),
        "latest event, with its neighbours": (GetIssueEvent(issue, "latest"), (100, 120)),
        "issues, feature:f3 (1 of 40)": (ListIssues(project, "feature:f3"), (120, 250)),
        "issues, session:77 (1 of 100,000)": (ListIssues(project, "session:77"), (120, 250)),
        "issues, a word": (ListIssues(project, second), (120, 200)),
        "issues, a part of a word": (ListIssues(project, part), (200, 300)),
        "facets of an issue": (CountIssueTags(issue), (100, 120)),
        "issues by users": (ListIssues(project, sort="users"), (300, 450)),
    }
    return [
        Measured("figures and small series of 50 issues", lambda: session.rows(figures), (10, 10)),
        *(Measured(name, partial(reader.read, call), target) for name, (call, target) in reads.items()),
    ]


async def timed(call: Call, repeats: int) -> list[float]:
    """The wall-clock ms of each repeat."""
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        await call()
        times.append((time.perf_counter() - began) * 1000)
    return times


async def bare(client: Client, statements: Sequence[Sql]) -> None:
    """The same statements through the bare driver, one after the other."""
    for sql in statements:
        client.query(sql.text, parameters=sql.values, column_formats=dict.fromkeys(sql.raw, "bytes"))


async def measure(url: str, client: Client, project: int, now_ms: int, repeats: int, only: str) -> None:
    """Measure the calls for one project."""
    recorder = Recorder(url, Limits())
    reader, session = Reader(recorder, now_ms=lambda: now_ms), Session(recorder, lambda: now_ms)
    for measured in await calls(reader, session, project):
        if only not in measured.name:
            continue
        try:
            await measured.call()
        except (QueryTooExpensive, StorageUnavailable) as error:
            print(f"{measured.name:<42}{'refused':>8}  {error}", flush=True)
            continue
        recorder.seen.clear()
        since, python = time.time_ns() // 1000, time.process_time()
        times = await timed(measured.call, repeats)
        python, until = time.process_time() - python, time.time_ns() // 1000
        client.command("SYSTEM FLUSH LOGS")
        ((server, read, memory),) = client.query(
            _CPU, parameters={"since": since, "until": until}
        ).result_rows
        statements = recorder.seen[: len(recorder.seen) // repeats]
        floor = statistics.median(await timed(partial(bare, client, statements), repeats))
        high = statistics.quantiles(times, n=20, method="inclusive")[-1]
        target = measured.target[0 if project == _MIDDLE else 1]
        print(
            f"{measured.name:<42}{statistics.median(times):>8.1f}{high:>8.1f}{target:>8}{floor:>8.1f}"
            f"{len(statements):>5}{python * 1000 / repeats:>8.1f}{server / 1000 / repeats:>8.1f}"
            f"{read / repeats:>13,.0f}{memory / 1e6:>7.0f}",
            flush=True,
        )
    await reader.close()


def prepared(client: Client, events: int) -> None:
    """Create missing data, and print its size. Ends the program where the data are of another number of events."""
    have = int(scalar(client, "SELECT count() FROM events"))
    if have not in {0, events}:
        sys.exit(f"the database has {have:,} events: name another folder, or ask for as many")
    if not have:
        began = time.perf_counter()
        build(client, events, time.time_ns() // 1_000_000)
        print(f"{events:,} events in {time.perf_counter() - began:.0f} s")
        settle(client, 900)
    for table, parts, rows, size in sizes(client):
        print(f"{table:<14}{parts:>4} parts{rows:>14,} rows{size / events:>8.1f} B an event")


@click.command()
@click.option("--directory", type=click.Path(path_type=Path), help="Where the data stay.")
@click.option("--events", default=1_000_000, show_default=True)
@click.option("--repeats", default=20, show_default=True, help="Of each call, after a first one.")
@click.option("--only", default="", help="Calls whose name has this.")
def main(directory: Path | None, events: int, repeats: int, only: str) -> None:
    """Build and measure."""
    with kept_or_temporary(directory) as folder:
        server = LocalClickHouse(folder).start(120)
        try:
            _measure_all(server.url(), events, repeats, only)
        finally:
            server.stop()


def _measure_all(url: str, events: int, repeats: int, only: str) -> None:
    migrate(url)
    client = open_client(url, send_receive_timeout=3600)
    prepared(client, events)
    now_ms = 1 + int(scalar(client, "SELECT toUnixTimestamp64Milli(max(ts)) FROM events"))
    heads = "".join(f"{head:>8}" for head in ("p50", "p95", "target", "bare"))
    for project, share in ((_MIDDLE, "7 %"), (_BIG, "26 %")):
        print(f"\nproject with {share} of {events:,} events; ms, target of p95")
        print(f"{'':<42}{heads}{'sql':>5}{'py cpu':>8}{'db cpu':>8}{'rows read':>13}{'MB':>7}")
        asyncio.run(measure(url, client, project, now_ms, repeats, only))
    client.close()


if __name__ == "__main__":
    main()
