"""How long each read call takes, beside a bare query of the same driver in the same run.

    python -m bench.storage_read --url http://user:password@host:port/database --events 1000000

The database is created, migrated and filled where it has fewer events than asked for: 50 projects of which the largest has about
a quarter, issues by a power law, ten tags an event, 30 days. Without --url a local ClickHouse is started in a temporary directory.
"""

import asyncio
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import click

from local.clickhouse import LocalClickHouse
from schemas.payload import compress
from storage.client import Client, open_client, scalar
from storage.migrate import migrate
from storage.query.parameters import Sql
from storage.reader import Limits, Reader
from storage.reader.execute import ClickHouseExecutor

STEP: Final = 200_000
DAY_MS: Final = 86_400_000

EVENTS: Final = """
INSERT INTO ingest
WITH
    cityHash64(number, 1) AS h1, cityHash64(number, 2) AS h2, cityHash64(number, 3) AS h3, cityHash64(number, 4) AS h4,
    (h1 % 1000000) / 1000000 AS u1, (h2 % 1000000) / 1000000 AS u2, (h3 % 1000000) / 1000000 AS u3,
    toUInt32(1 + floor(50 * pow(u1, 2.9))) AS project,
    toUInt64(floor(5000 * pow(u2, 3))) AS rank,
    fromUnixTimestamp64Milli({now:Int64} - toInt64(u3 * 30 * 86400000), 'UTC') AS at,
    h4 % 4611686018427387904 AS low
SELECT
    project, cityHash64(project, rank), at,
    bitShiftLeft(toUInt128(toUnixTimestamp64Milli(at)), 80) + bitShiftLeft(toUInt128(7), 76) + bitShiftLeft(toUInt128(2), 62) + low,
    at, concat('app@1.', toString(h2 % 20), '+', toString(h2 % 20)), ['prod', 'prod', 'prod', 'staging', 'dev'][1 + h3 % 5],
    ['javascript', 'ios', 'android'][1 + rank % 3], 'error', ['web', 'ios', 'android'][1 + rank % 3], toString(10 + h1 % 9),
    concat('model', toString(h4 % 200)), ['en-US', 'de-DE', 'pt-BR'][1 + h1 % 3], 'browser/0.1.0',
    concat('u', toString(h2 % 200000)), 1 + h2 % 200000,
    ['TypeError', 'RangeError', 'NetworkError', 'IOException', 'TimeoutException'][1 + rank % 5],
    concat('Cannot read word', toString(rank % 700), ' of request ', toString(h3 % 100000), ' while ', ['loading', 'saving'][1 + rank % 2]),
    [concat('src/file', toString(rank % 300), '.ts'), 'vendor/react.js'], [concat('fn', toString(rank % 900)), 'render'],
    map('feature', concat('f', toString(h1 % 40)), 'tier', ['free', 'pro', 'team'][1 + h2 % 3], 'logger', concat('l', toString(h3 % 100)),
        'level', ['E', 'W', 'I'][1 + h4 % 3], 'region', concat('r', toString(h1 % 12)), 'build', toString(h2 % 500),
        'session', toString(h3 % 100000), 'screen', concat('s', toString(h4 % 60)), 'ab', toString(h1 % 4), 'carrier', concat('c', toString(h2 % 30))),
    'v1', 'stack', 90, 90, unhex({payload:String})
FROM numbers({first:UInt64}, {many:UInt64})
SETTINGS max_insert_threads = 1, max_partitions_per_insert_block = 2000, deduplicate_blocks_in_dependent_materialized_views = 0
"""

SHARES: Final = """
SELECT project_id, count() / (SELECT count() FROM events) FROM events GROUP BY project_id ORDER BY 2 DESC
"""

ISSUES: Final = """
INSERT INTO issues (project_id, issue_id, fingerprints, error_type, message, culprit, platform, status, regressed, first_seen,
    last_seen, events, users, first_release, last_release, environments, releases, assignee, last_event, grouping_version, grouping_rule,
    grouping_parts, version)
SELECT project_id, cityHash64('issue', fingerprint), [fingerprint], any(error_type), any(message), 'render', any(platform),
    ['open', 'open', 'resolved', 'ignored'][1 + fingerprint % 4], fingerprint % 10 = 0, min(ts), max(ts), count(), uniq(user_hash),
    argMin(release, ts), argMax(release, ts), groupUniqArray(environment), groupUniqArray(release), if(fingerprint % 5 = 0, 'ann', ''),
    argMax(id, ts), 'v1', 'stack', ['render'], 1
FROM events GROUP BY project_id, fingerprint
"""


def fill(client: Client, events: int, now_ms: int) -> None:
    """Insert what is missing, and the issues of all."""
    payload = compress(b'{"error":{"type":"TypeError","message":"bench","stack":[]}}').hex()
    have = int(scalar(client, "SELECT count() FROM events"))
    began = time.perf_counter()
    for first in range(have, events, STEP):
        many = min(STEP, events - first)
        client.command(EVENTS, parameters={"now": now_ms, "first": first, "many": many, "payload": payload})
    if have < events:
        client.command("TRUNCATE TABLE issues")
        client.command(ISSUES)
        print(f"{events - have:,} events in {time.perf_counter() - began:.0f} s")


async def measured(name: str, call: Callable[[], Awaitable[object]], repeats: int) -> None:
    """Print median and 95th percentile of a call, warm."""
    await call()
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        await call()
        times.append((time.perf_counter() - began) * 1000)
    p95 = statistics.quantiles(times, n=20)[-1]
    print(f"{name:<44}{statistics.median(times):>9.1f}{p95:>9.1f}")


async def measure(url: str, project: int, share: float, now_ms: int, repeats: int) -> None:
    """All calls for one project."""
    executor = ClickHouseExecutor(url, Limits())
    reader = Reader(executor, now_ms=lambda: now_ms)
    page = await reader.issues(project, sort="events")
    issue = page.issues[0].id
    event = (await reader.issue_events(issue, limit=10)).events[5].id
    start, end = now_ms - 9 * DAY_MS - 12_345, now_ms - 12_345
    calls: dict[str, Callable[[], Awaitable[object]]] = {
        "bare query: SELECT 1": lambda: executor.rows(Sql("SELECT 1", {})),
        "bare query: counts of the project's days": lambda: executor.rows(
            Sql(
                "SELECT day, sum(n) FROM issue_day WHERE project_id = {p:UInt32} GROUP BY day", {"p": project}
            )
        ),
        "issues": lambda: reader.issues(project),
        "issues, exact range": lambda: reader.issues(project, start=start, end=end),
        "issues, second page": lambda: reader.issues(project, cursor=page_cursor),
        "issues by events": lambda: reader.issues(project, sort="events"),
        "issues by users": lambda: reader.issues(project, sort="users"),
        "issues by trend": lambda: reader.issues(project, sort="trend"),
        "issues is:open": lambda: reader.issues(project, "is:open"),
        "issues environment:prod": lambda: reader.issues(project, "environment:prod"),
        "issues feature:f3 (1 of 40)": lambda: reader.issues(project, "feature:f3"),
        "issues session:77 (1 of 100,000)": lambda: reader.issues(project, "session:77"),
        "issues word42": lambda: reader.issues(project, "word42"),
        "issues substring": lambda: reader.issues(project, "ord42*req"),
        "issues feature:f3 OR is:resolved": lambda: reader.issues(project, "feature:f3 OR is:resolved"),
        "issue": lambda: reader.issue(issue),
        "issue events": lambda: reader.issue_events(issue),
        "event by id, with neighbours": lambda: reader.issue_event(issue, event),
        "latest event, with neighbours": lambda: reader.issue_event(issue, "latest"),
        "project events": lambda: reader.project_events(project),
        "project events feature:f3": lambda: reader.project_events(project, "feature:f3"),
        "facets of an issue": lambda: reader.issue_tags(issue),
        "facets of the project": lambda: reader.project_tags(project),
        "facets of the project, environment:prod": lambda: reader.project_tags(project, "environment:prod"),
        "values of a tag": lambda: reader.tag_values(project, "feature", "f1"),
        "series of an issue": lambda: reader.issue_stats(issue),
        "series of the project": lambda: reader.project_stats(project),
        "series of the project feature:f3": lambda: reader.project_stats(project, "feature:f3"),
        "releases": lambda: reader.releases(project),
    }
    page_cursor = (await reader.issues(project)).next_cursor
    print(f"\nproject {project} with {share:.0%} of all events; ms{'p50':>32}{'p95':>9}")
    for name, call in calls.items():
        await measured(name, call, repeats)
    await reader.close()


@contextmanager
def served(url: str) -> Iterator[str]:
    """The given server, or one of our own for the time of the run."""
    if url:
        yield url
        return
    with tempfile.TemporaryDirectory() as folder:
        server = LocalClickHouse(Path(folder)).start(120)
        try:
            yield server.url()
        finally:
            server.stop()


@click.command()
@click.option("--url", default="", help="as SVC_CLICKHOUSE_URL; without it a local server is started")
@click.option("--events", default=1_000_000, show_default=True)
@click.option("--repeats", default=20, show_default=True, help="of each call, after a first one")
def main(url: str, events: int, repeats: int) -> None:
    """Fill and measure."""
    with served(url) as address:
        migrate(address)
        client = open_client(address, send_receive_timeout=3600)
        fill(client, events, time.time_ns() // 1_000_000)
        newest = int(scalar(client, "SELECT toUnixTimestamp64Milli(max(ts)) FROM events"))
        rows = client.query(SHARES).result_rows
        client.close()
        near = min(rows, key=lambda row: abs(row[1] - 0.07))
        for project, share in (rows[0], near):
            asyncio.run(measure(address, project, share, newest + 1, repeats))


if __name__ == "__main__":
    main()
