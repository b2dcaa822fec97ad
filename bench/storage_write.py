"""Writes to ClickHouse, with a floor from the same run: `python -m bench.storage_write [--data FILE] [--rows N] [--block N]...`.

For each block size: grouped events to columns (decode, gather), columns to Arrow, and the insert with every rollup. The floor
is the insert alone of Arrow tables that are ready. CPU of Python and of the server (local servers only) is a row's, in microseconds.
Events have the fingerprint that grouping gives them, an issue lies in one project, and some are much more frequent than others.
"""

import gzip
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import click
import psutil
import pyarrow as pa
from msgspec import Struct
from rich.console import Console
from rich.table import Table

from cli.demo.sample_events import FILE
from grouping.fingerprint import fingerprint
from local.clickhouse.server import LocalClickHouse
from processors.grouper.event_outline import decode_event, grouping_event
from schemas.chunks import ChunkEvent, Grouping
from schemas.ids import uuid7
from schemas.times import DAY_MS
from storage.client import INSERT_SETTINGS, Client, open_client, scalar
from storage.migrations.migrate import migrate
from storage.writer.event_rows import EventColumns

PROJECTS = 50
SKEW = 2
MERGE_SECONDS = 60


class Measured(Struct):
    """One run: rows, wall-clock seconds, and CPU seconds of Python and of the server."""

    rows: int
    seconds: float
    python: float
    server: float


@click.command()
@click.option("--data", type=click.Path(exists=True, path_type=Path), default=FILE, show_default=True)
@click.option("--rows", default=60_000, show_default=True, help="rows of each run")
@click.option("--block", "blocks", type=int, multiple=True, default=(2_000, 20_000), show_default=True)
@click.option(
    "--url", help="a running ClickHouse, on which a database with a random name is created and dropped"
)
def main(data: Path, rows: int, blocks: Sequence[int], url: str | None) -> None:
    """Measure the writer from events to tables."""
    lines = gzip.decompress(data.read_bytes()).splitlines()
    _measure_all([_grouped(line) for line in lines], rows, blocks, url)


def _measure_all(
    events: Sequence[tuple[bytes, Grouping]], rows: int, blocks: Sequence[int], url: str | None
) -> None:
    carried = list(_carried(events, rows))
    out = Table(title=f"{rows:,} real events a run, all tables and rollups")
    for name in ("block", "what", "rows/s", "Python µs", "server µs"):
        out.add_column(name, justify="left" if name == "what" else "right")
    with _server(url) as (client, pid):
        floor_first = _floor(client, carried, min(blocks), pid)
        _add(out, min(blocks), "(warm-up) insert of ready tables", floor_first)
        for size in blocks:
            floor = _floor(client, carried, size, pid)
            whole = _whole(client, carried, size, pid)
            _add(out, size, "insert of ready tables (floor)", floor)
            _add(out, size, "events to columns, then insert", whole, floor)
        figures = _disk(client)
    console = Console()
    console.print(out)
    console.print(figures)


def _grouped(line: bytes) -> tuple[bytes, Grouping]:
    print_ = fingerprint(grouping_event(decode_event(line)))
    return line, Grouping(print_.hash, print_.version, print_.rule, print_.parts)


def _carried(events: Sequence[tuple[bytes, Grouping]], rows: int) -> Iterator[tuple[ChunkEvent, Grouping]]:
    now = time.time_ns() // 1_000_000
    for number in range(rows):
        moment = now - number * DAY_MS // rows
        payload, grouping = events[int(len(events) * (number * 0.754877 % 1) ** SKEW)]
        project = 1 + int(PROJECTS * (grouping.fingerprint / (1 << 64)) ** 2)
        yield ChunkEvent(project, uuid7(moment).bytes, moment, "js/1.0", payload), grouping


def _columns(part: Sequence[tuple[ChunkEvent, Grouping]]) -> pa.Table:
    columns = EventColumns()
    for event, grouping in part:
        columns.add(event, grouping, 90, 90)
    return columns.table()


def _insert(client: Client, table: pa.Table) -> None:
    settings = {**INSERT_SETTINGS, "insert_deduplication_token": uuid.uuid4().hex}
    client.insert_arrow("ingest", table, settings=settings)


def _floor(
    client: Client, carried: Sequence[tuple[ChunkEvent, Grouping]], size: int, pid: int | None
) -> Measured:
    ready = [_columns(carried[first : first + size]) for first in range(0, len(carried), size)]

    def run() -> None:
        for table in ready:
            _insert(client, table)

    return _measured(client, run, len(carried), pid)


def _whole(
    client: Client, carried: Sequence[tuple[ChunkEvent, Grouping]], size: int, pid: int | None
) -> Measured:
    def run() -> None:
        # Like the writer: insert one block while the next is collected.
        with ThreadPoolExecutor(1) as thread:
            under_way: Future[None] | None = None
            for first in range(0, len(carried), size):
                table = _columns(carried[first : first + size])
                if under_way is not None:
                    under_way.result()
                under_way = thread.submit(_insert, client, table)

    return _measured(client, run, len(carried), pid)


def _measured(client: Client, run: Callable[[], None], rows: int, pid: int | None) -> Measured:
    _settle(client)
    server = _cpu(pid)
    started, python = time.perf_counter(), time.process_time()
    run()
    seconds, python = time.perf_counter() - started, time.process_time() - python
    return Measured(rows, seconds, python, _cpu(pid) - server)


def _settle(client: Client) -> None:
    """Wait for the merges of an earlier run."""
    limit = time.monotonic() + MERGE_SECONDS
    while scalar(client, "SELECT count() FROM system.merges WHERE database = currentDatabase()"):
        if time.monotonic() > limit:
            return
        time.sleep(0.2)


def _cpu(pid: int | None) -> float:
    if pid is None:
        return 0.0
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def _add(table: Table, size: int, what: str, run: Measured, floor: Measured | None = None) -> None:
    ratio = f" ({run.python / floor.python:.1f} × floor)" if floor else ""
    table.add_row(
        f"{size:,}",
        what,
        f"{run.rows / run.seconds:,.0f}",
        f"{run.python / run.rows * 1e6:.1f}{ratio}",
        f"{run.server / run.rows * 1e6:.1f}",
    )


def _disk(client: Client) -> str:
    _settle(client)
    rows = client.query(
        "SELECT table, sum(bytes_on_disk) FROM system.parts WHERE active AND database = currentDatabase() GROUP BY table"
    ).result_rows
    bytes_of = {str(table): int(size) for table, size in rows}
    events = int(scalar(client, "SELECT count() FROM events"))
    rollups = sum(size for table, size in bytes_of.items() if table not in {"events", "payloads"})
    return (
        f"bytes an event on disk: events {bytes_of['events'] / events:.0f}, payloads {bytes_of['payloads'] / events:.0f}, "
        f"rollups {rollups / events:.0f}"
    )


@contextmanager
def _server(url: str | None) -> Iterator[tuple[Client, int | None]]:
    with tempfile.TemporaryDirectory() as folder:
        server = None if url else LocalClickHouse(Path(folder)).start()
        base = url or (server.url() if server else "")
        database = f"test_bench_{uuid.uuid4().hex[:8]}"
        address = urlsplit(base)._replace(path=f"/{database}").geturl()
        migrate(address)
        client = open_client(address)
        try:
            yield client, server.pid if server else None
        finally:
            client.command(f"DROP DATABASE {database} SYNC")
            client.close()
            if server:
                server.stop()


if __name__ == "__main__":
    main()
