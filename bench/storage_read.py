"""The latency of each read call, compared with its statements through the bare driver in the same run.

    python -m bench.storage_read --events 1000000        # then 10000000, 100000000 (about half an hour of two cores to build)
    python -m bench.storage_read --events 10000000 --directory DIR         # the data stay in DIR and are reused; an interrupted build resumes
    python -m bench.storage_read ... --explain "issues, a word"            # the plan of each statement, and what it read

Without --url a local ClickHouse is started, with 4 GiB at most. Figures are medians and 95th percentiles in ms: `call` is the call,
`cpu` what Python and the server computed for it, `bare` its statements one after the other by clickhouse-connect alone.
"""

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import click

from bench.storage_read_calls import Call, Recorder, calls
from bench.storage_read_data import PROJECTS, build, settle, sizes
from local.clickhouse.server import LocalClickHouse
from storage.client import ClickHouseError, Client, open_client, scalar
from storage.errors import QueryTooExpensive, StorageUnavailable
from storage.migrations.migrate import migrate
from storage.reader.execute import Limits, Sql
from storage.reader.reader import Reader, Session

_BIG, _MIDDLE = 1, 2
_SHARES: Final = (
    "SELECT project_id, sum(n) / (SELECT sum(n) FROM project_hour) FROM project_hour GROUP BY project_id"
)
_CPU: Final = """
SELECT sum(ProfileEvents['OSCPUVirtualTimeMicroseconds']), sum(read_rows), max(memory_usage) FROM system.query_log
WHERE type = 'QueryFinish' AND event_time_microseconds >= fromUnixTimestamp64Micro({since:Int64})
    AND event_time_microseconds < fromUnixTimestamp64Micro({until:Int64}) AND query NOT LIKE '%query_log%'
"""
_CACHES: Final = ("MARK CACHE", "UNCOMPRESSED CACHE", "QUERY CONDITION CACHE")
_FLOORS: Final = {
    "floor: SELECT 1": "SELECT 1",
    "floor: counts of the project's days": "SELECT day, sum(n) FROM issue_day WHERE project_id = {p:UInt32} GROUP BY day",
    "floor: one payload by its key": "SELECT payload FROM payloads WHERE project_id = {p:UInt32} AND id = {e:UInt128}",
    "floor: count of one tag": "SELECT count() FROM events WHERE project_id = {p:UInt32} AND"
    " has(arrayMap((k, v) -> concat(k, '=', v), mapKeys(tags), mapValues(tags)), 'feature=f3')",
}


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


def bare(client: Client, statements: Sequence[Sql], repeats: int) -> tuple[float, float]:
    """The same statements through the bare driver, sequentially."""
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
    return middle_and_high(times)


def cold(client: Client) -> bool:
    """Drop the server's caches (not the system's file cache); false if not permitted."""
    try:
        for cache in _CACHES:
            client.command(f"SYSTEM DROP {cache}")
    except ClickHouseError:
        return False
    return True


async def measure(
    url: str, client: Client, project: int, now_ms: int, repeats: int, only: str, aimed: bool
) -> None:
    """Measure the calls for one project: all, or those with a target."""
    recorder = Recorder(url, Limits())
    reader, session = Reader(recorder, now_ms=lambda: now_ms), Session(recorder, lambda: now_ms)
    found = await calls(reader, session, project, now_ms)
    for measured in found:
        if only not in measured.name or (aimed and measured.target is None):
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
        first = await _cold(client, measured.call, max(3, repeats // 5))
        floor, _ = bare(client, statements, repeats)
        half, high = middle_and_high(times)
        target = measured.target[0 if project == _MIDDLE else 1] if measured.target else ""
        print(
            f"{measured.name:<42}{half:>8.1f}{high:>8.1f}{target:>8}{floor:>8.1f}{first:>8}{len(statements):>5}{used}",
            flush=True,
        )
    await reader.close()


def _used(client: Client, since: int, repeats: int, python: float) -> str:
    """The cost per repeat since a time (Unix microseconds): CPU of Python and the server in ms, rows read, peak MB."""
    values = {"since": since, "until": time.time_ns() // 1000}
    client.command("SYSTEM FLUSH LOGS")
    cpu, rows, memory = client.query(_CPU, parameters=values).result_rows[0]
    return f"{python:>8.1f}{cpu / 1000 / repeats:>8.1f}{rows / repeats:>13,.0f}{memory / 1e6:>7.0f}"


async def _cold(client: Client, call: Call, repeats: int) -> str:
    times = []
    for _ in range(repeats):
        if not await asyncio.to_thread(cold, client):
            return "-"
        times += (await timed(call, 1))[0]
    return f"{statistics.median(times):.1f}"


def floors(client: Client, project: int, repeats: int) -> None:
    """Hand-written minimal statements, as a floor."""
    event = int(scalar(client, "SELECT max(id) FROM payloads WHERE project_id = {p:UInt32}", {"p": project}))
    for name, text in _FLOORS.items():
        values: dict[str, object] = {"p": project, "e": event}
        named = {key: value for key, value in values.items() if f"{{{key}:" in text}
        sql = Sql(text, named, ("payload",) if "payload" in text else ())
        bare(client, [sql], 2)
        since, python = time.time_ns() // 1000, time.process_time()
        half, high = bare(client, [sql], repeats)
        python = (time.process_time() - python) * 1000 / repeats
        print(f"{name:<42}{half:>8.1f}{high:>8.1f}{'':>29}{_used(client, since, repeats, python)}")


async def explain(url: str, client: Client, project: int, now_ms: int, name: str) -> None:
    """Print the indexes, the pipeline and the rows read of each statement of a call."""
    recorder = Recorder(url, Limits())
    reader, session = Reader(recorder, now_ms=lambda: now_ms), Session(recorder, lambda: now_ms)
    known = {each.name: each.call for each in await calls(reader, session, project, now_ms)}
    if name not in known:
        raise click.BadParameter(f"{name!r} is none of: {'; '.join(known)}", param_hint="--explain")
    call = known[name]
    await call()
    recorder.seen.clear()
    await call()
    for sql in recorder.seen:
        print("\n" + sql.text)
        for kind in ("indexes = 1", "PIPELINE"):
            rows = client.query(f"EXPLAIN {kind} {sql.text}", parameters=sql.values).result_rows
            print("\n".join(str(line) for (line,) in rows))
        answer = client.query(
            sql.text,
            parameters=sql.values,
            column_formats=dict.fromkeys(sql.raw, "bytes"),
        )
        print({key: answer.summary.get(key) for key in ("read_rows", "read_bytes", "elapsed_ns")})
    await reader.close()


@contextmanager
def served(url: str, directory: Path | None) -> Iterator[str]:
    """The given server, or a temporary local one."""
    if url:
        yield url
        return
    with tempfile.TemporaryDirectory() as folder:
        server = LocalClickHouse(directory or Path(folder)).start(120)
        try:
            yield server.url()
        finally:
            server.stop()


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
@click.option("--url", default="", help="as SVC_CLICKHOUSE_URL; without it a local server is started")
@click.option("--directory", type=click.Path(path_type=Path), help="where the local server's data stay")
@click.option("--events", default=1_000_000, show_default=True)
@click.option("--repeats", default=20, show_default=True, help="of each call, after a first one")
@click.option("--only", default="", help="calls whose name has this")
@click.option("--aimed", is_flag=True, help="only calls that have a target")
@click.option("--explain", "explained", default="", help="the plan of a call instead of its time")
def main(
    url: str, directory: Path | None, events: int, repeats: int, only: str, aimed: bool, explained: str
) -> None:
    """Build and measure."""
    with served(url, directory) as address:
        migrate(address)
        client = open_client(address, send_receive_timeout=3600)
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
            if explained:
                asyncio.run(explain(address, client, project, now_ms, explained))
                continue
            print(f"\nproject with {shares[project]:.0%} of {events:,} events; ms, target of p95")
            print(
                f"{'':<42}{'p50':>8}{'p95':>8}{'target':>8}{'bare':>8}{'cold':>8}{'sql':>5}{'py cpu':>8}{'db cpu':>8}{'rows read':>13}{'MB':>7}"
            )
            floors(client, project, repeats)
            asyncio.run(measure(address, client, project, now_ms, repeats, only, aimed))
        client.close()


if __name__ == "__main__":
    main()
