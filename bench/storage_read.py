"""The latency of each read call, compared with its statements through the bare driver in the same run.

    python -m bench.storage_read --events 1000000                    # 100000000: half an hour to build
    python -m bench.storage_read --events 10000000 --directory DIR   # the data stay in DIR and are reused

An interrupted build resumes.

A local ClickHouse is started, with 4 GiB at most. Figures are medians and 95th percentiles in ms: `call` is
the call, `cpu` what Python and the server computed for it, `bare` its statements one after the other by
clickhouse-connect alone: the floor.
"""

import asyncio
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from bench.servers import kept_or_temporary
from bench.storage_read_calls import Call, Recorder, calls
from bench.storage_read_data import PROJECTS, build, settle, sizes
from local.clickhouse.server import LocalClickHouse
from storage.client import Client, open_client, scalar
from storage.errors import QueryTooExpensive, StorageUnavailable
from storage.read.execute import Limits, Sql
from storage.read.reader import Reader, Session
from storage.tables.migrations.migrate import migrate

_BIG, _MIDDLE = 1, 2
_SHARES: Final = (
    "SELECT project_id, sum(n) / (SELECT sum(n) FROM project_hour) FROM project_hour GROUP BY project_id"
)
_CPU: Final = """
SELECT sum(ProfileEvents['OSCPUVirtualTimeMicroseconds']), sum(read_rows), max(memory_usage)
FROM system.query_log
WHERE type = 'QueryFinish' AND event_time_microseconds >= fromUnixTimestamp64Micro({since:Int64})
    AND event_time_microseconds < fromUnixTimestamp64Micro({until:Int64}) AND query NOT LIKE '%query_log%'
"""
_CACHES: Final = ("MARK CACHE", "UNCOMPRESSED CACHE", "QUERY CONDITION CACHE")


async def timed(call: Call, repeats: int) -> tuple[list[float], float]:
    """Wall-clock ms of each repeat, and Python's CPU ms per repeat."""
    times, cpu = [], time.process_time()
    for _ in range(repeats):
        began = time.perf_counter()
        await call()
        times.append((time.perf_counter() - began) * 1000)
    return times, (time.process_time() - cpu) * 1000 / repeats


def middle_and_high(times: Sequence[float]) -> tuple[float, float]:
    """Median and 95th percentile."""
    return statistics.median(times), statistics.quantiles(times, n=20, method="inclusive")[-1]


def bare(client: Client, statements: Sequence[Sql], repeats: int) -> float:
    """The median of the same statements through the bare driver, sequentially."""
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        for sql in statements:
            client.query(
                sql.text,
                parameters=sql.values,
                column_formats=dict.fromkeys(sql.raw, "bytes"),
            )
        times.append((time.perf_counter() - began) * 1000)
    return statistics.median(times)


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
        since = time.time_ns() // 1000
        times, python = await timed(measured.call, repeats)
        statements = recorder.seen[: len(recorder.seen) // repeats]
        used = _used(client, since, repeats, python)
        cold = await _cold(client, measured.call, max(3, repeats // 5))
        floor = bare(client, statements, repeats)
        half, high = middle_and_high(times)
        target = measured.target[0 if project == _MIDDLE else 1]
        print(
            f"{measured.name:<42}{half:>8.1f}{high:>8.1f}{target:>8}{floor:>8.1f}{cold:>8.1f}"
            f"{len(statements):>5}{used}",
            flush=True,
        )
    await reader.close()


def _used(client: Client, since: int, repeats: int, python: float) -> str:
    """The cost per repeat since a time (Unix microseconds): CPU of Python and the server in ms, rows read, peak MB."""
    values = {"since": since, "until": time.time_ns() // 1000}
    client.command("SYSTEM FLUSH LOGS")
    cpu, rows, memory = client.query(_CPU, parameters=values).result_rows[0]
    return f"{python:>8.1f}{cpu / 1000 / repeats:>8.1f}{rows / repeats:>13,.0f}{memory / 1e6:>7.0f}"


async def _cold(client: Client, call: Call, repeats: int) -> float:
    """The median without the server's caches (the system keeps its file cache)."""
    times = []
    for _ in range(repeats):
        for cache in _CACHES:
            await asyncio.to_thread(client.command, f"SYSTEM DROP {cache}")
        times += (await timed(call, 1))[0]
    return statistics.median(times)


def prepared(client: Client, events: int) -> None:
    """Create missing data, and print its size."""
    complete = scalar(client, "SELECT count() FROM issues")
    if not complete or int(scalar(client, "SELECT count() FROM events")) != events:
        built = build(client, events, time.time_ns() // 1_000_000)
        print(f"{built.events:,} events in {built.seconds:.0f} s: {built.events / built.seconds:,.0f} rows/s")
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
    try:
        prepared(client, events)
    except ValueError as error:
        sys.exit(str(error))
    now_ms = 1 + int(scalar(client, "SELECT toUnixTimestamp64Milli(max(ts)) FROM events"))
    shares: dict[int, float] = {
        int(project): float(share) for project, share in client.query(_SHARES).result_rows
    }
    assert len(shares) == PROJECTS
    for project in (_MIDDLE, _BIG):
        print(f"\nproject with {shares[project]:.0%} of {events:,} events; ms, target of p95")
        heads = "".join(f"{head:>8}" for head in ("p50", "p95", "target", "bare", "cold"))
        print(f"{'':<42}{heads}{'sql':>5}{'py cpu':>8}{'db cpu':>8}{'rows read':>13}{'MB':>7}")
        asyncio.run(measure(url, client, project, now_ms, repeats, only))
    client.close()


if __name__ == "__main__":
    main()
