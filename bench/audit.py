"""What the writer's audit costs ClickHouse and the writer: `python -m bench.audit [--minutes N] [--rate N]`.

Fills some minutes at a rate, a block a second with one row of `outcomes` for each SDK, project and chunk, and audits after each minute of
data. CPU of the server is that of its process while nothing is merged (local servers only).
"""

import os
import time

import click
import psutil

from bench.storage_write import _server
from storage.audit.audit_reading import WINDOW_HOURS, AuditTables
from storage.audit.differences import HOUR, judge
from storage.client import INSERT_SETTINGS, Client, scalar

CORES = 2
_EVENTS = """
    INSERT INTO ingest (project_id, fingerprint, ts, received, id, retention_days, payload_days, payload, environment, release)
    SELECT 1 + cityHash64(number) % {projects:UInt32}, cityHash64(number, 1) % 5000, at, at,
        number + {first:UInt64}, 90, 90, 'x', 'prod', 'shop@1'
    FROM (SELECT number, toDateTime64({second:UInt32}, 3, 'UTC') + toIntervalMillisecond(number % 1000) AS at FROM numbers({rate:UInt32}))"""
_OUTCOMES = """
    INSERT INTO outcomes (project_id, minute, sdk, outcome, source, sequence, count)
    SELECT 1 + cityHash64(number) % {projects:UInt32} AS project, toStartOfMinute(toDateTime({second:UInt32}, 'UTC')), 'js/1',
        'accepted', 'grouper/0', intDiv(number + {first:UInt64}, 100) AS chunk, count()
    FROM numbers({rate:UInt32}) GROUP BY project, chunk"""


@click.command()
@click.option("--minutes", default=10, show_default=True, help="minutes of data before the measured ones")
@click.option("--measured", default=5, show_default=True, help="minutes of data, with an audit after each")
@click.option("--rate", default=5000, show_default=True, help="events a second")
@click.option("--projects", default=50, show_default=True)
@click.option("--url", help="a running ClickHouse")
def main(minutes: int, measured: int, rate: int, projects: int, url: str | None) -> None:
    """Measure audits of data that grows at full load."""
    with _server(url) as (client, pid):
        now = int(time.time())
        start = now - 60 * (minutes + measured)
        tables = AuditTables()
        for minute in range(minutes + measured + 1):
            if minute < minutes:
                _fill(client, start + 60 * minute, rate, projects)
                continue
            while scalar(client, "SELECT count() FROM system.merges"):
                time.sleep(0.1)
            server, own = _cpu(pid), time.thread_time()
            rss = psutil.Process(os.getpid()).memory_info().rss
            since = now // HOUR * HOUR - WINDOW_HOURS * HOUR
            first = tables.read(client, since, now)
            second = tables.read(client, since, now)
            found = judge(first, second, since, now)
            spent = (_cpu(pid) - server, time.thread_time() - own)
            share = 100 * sum(spent) / 60 / CORES
            grown = (psutil.Process(os.getpid()).memory_info().rss - rss) >> 20
            click.echo(
                f"{minute} min, {rate * 60 * minute:,} events: server {spent[0]:.2f} s, Python {spent[1]:.2f} s"
                f" = {share:.2f} % of {CORES} cores, {grown} MB, {len(found)} differences"
            )
            if minute < minutes + measured:
                _fill(client, start + 60 * minute, rate, projects)


def _fill(client: Client, start: int, rate: int, projects: int) -> None:
    for second in range(start, start + 60):
        values = {"second": second, "rate": rate, "projects": projects, "first": second * rate}
        for sql in (_EVENTS, _OUTCOMES):
            client.command(sql, parameters=values, settings=dict(INSERT_SETTINGS))


def _cpu(pid: int | None) -> float:
    if pid is None:
        return 0.0
    times = psutil.Process(pid).cpu_times()
    return times.user + times.system


if __name__ == "__main__":
    main()
