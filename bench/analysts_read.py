"""The cost of the analysts' views compared with their tables, in the same run and interleaved.

    python -m bench.analysts_read --events 2000000
    python -m bench.analysts_read --events 10000000 --directory DIR        # the data stay in DIR and are reused

Figures are medians of the server's CPU time (ms) and the rows read; both answers must be equal.
"""

import secrets
import sys
from pathlib import Path
from typing import Final

import click
from msgspec import Struct

from bench.storage_read import prepared, served
from storage.client import Client, open_client
from storage.migrations.migrate import migrate

_TAG: Final = "arrayMap((k, v) -> concat(k, '=', v), mapKeys(tags), mapValues(tags))"
_COSTS: Final = """
SELECT log_comment, median(ProfileEvents['OSCPUVirtualTimeMicroseconds']) / 1000, any(read_rows) FROM system.query_log
WHERE type = 'QueryFinish' AND startsWith(log_comment, {run:String}) GROUP BY log_comment
"""


class Pair(Struct, frozen=True):
    """The same query on a table and on a view."""

    name: str
    table: str
    view: str


def pairs(project: int, since: str, issue: str, fingerprint: int) -> list[Pair]:
    """Queries over a project's days from `since`; one is about an issue with a single fingerprint."""
    events = f"WHERE project_id = {project} AND ts >= toDateTime64('{since}', 3, 'UTC')"
    days = f"WHERE project_id = {project} AND day >= '{since}'"
    hours = f"WHERE project_id = {project} AND hour >= toDateTime('{since} 00:00:00', 'UTC')"

    def of_events(name: str, select: str, table: str = "", view: str = "", suffix: str = "") -> Pair:
        return Pair(
            name,
            f"{select} FROM events {events} {table} {suffix}",
            f"{select} FROM analyst_events {events} {view or table} {suffix}",
        )

    by_first = "GROUP BY 1 ORDER BY 1"
    return [
        of_events("count", "SELECT count()"),
        of_events("by release", "SELECT release, count()", suffix=by_first),
        of_events("users by day", "SELECT toDate(ts), uniqExact(user_id)", suffix=by_first),
        of_events(
            "a rare tag",
            "SELECT count()",
            f"AND has({_TAG}, 'session=77')",
            "AND has(tag_pairs, 'session=77')",
        ),
        of_events(
            "a frequent tag",
            "SELECT count()",
            f"AND has({_TAG}, 'feature=f3')",
            "AND has(tag_pairs, 'feature=f3')",
        ),
        of_events("a word", "SELECT count()", "AND lower(message) LIKE '%timeout%'"),
        of_events(
            "an issue", "SELECT count()", f"AND fingerprint = {fingerprint}", f"AND issue_id = '{issue}'"
        ),
        Pair(
            "issues by events",
            f"SELECT count() AS n FROM events {events} GROUP BY fingerprint ORDER BY n DESC LIMIT 5",
            f"SELECT count() AS n FROM analyst_events {events} GROUP BY issue_id ORDER BY n DESC LIMIT 5",
        ),
        Pair(
            "days of issues",
            f"SELECT day, sum(n) FROM issue_day {days} {by_first}",
            f"SELECT day, sum(events) FROM analyst_issue_day {days} {by_first}",
        ),
        Pair(
            "users of days of issues",
            f"SELECT day, uniqCombinedMerge(12)(users) FROM issue_day {days} {by_first}",
            f"SELECT day, uniqCombinedMerge(12)(users) FROM analyst_issue_day_states {days} {by_first}",
        ),
        Pair(
            "releases, with the issue",
            f"SELECT release, sum(n) FROM issue_day_er {days} {by_first}",
            f"SELECT release, sum(events) FROM analyst_issue_release_day {days} {by_first}",
        ),
        Pair(
            "releases, without",
            f"SELECT release, sum(n) FROM issue_day_er {days} {by_first}",
            f"SELECT release, sum(events) FROM analyst_release_day {days} {by_first}",
        ),
        Pair(
            "hours of the project",
            f"SELECT hour, sum(n) FROM project_hour {hours} {by_first}",
            f"SELECT hour, sum(events) FROM analyst_project_hour {hours} {by_first}",
        ),
        Pair(
            "tags",
            f"SELECT v, sum(n) AS c FROM tag_day {days} AND k = 'feature' GROUP BY 1 ORDER BY c DESC, 1 LIMIT 5",
            f"SELECT value, sum(events) AS c FROM analyst_tag_day {days} AND key = 'feature' GROUP BY 1 ORDER BY c DESC, 1 LIMIT 5",
        ),
        Pair(
            "issues",
            f"SELECT count(), sum(events) FROM issues FINAL WHERE project_id = {project} AND deleted = 0 AND merged_into = 0",
            f"SELECT count(), sum(events) FROM analyst_issues WHERE project_id = {project}",
        ),
    ]


def measure(client: Client, queries: list[Pair], repeats: int) -> None:
    """Run all queries interleaved and print their cost."""
    run = secrets.token_hex(4)
    for pair in queries:
        both = [client.query(sql).result_rows for sql in (pair.table, pair.view)]
        if both[0] != both[1]:
            raise ValueError(f"{pair.name}: the view answers {both[1]}, the table {both[0]}")
        for _ in range(repeats):
            for side, sql in (("table", pair.table), ("view", pair.view)):
                client.query(sql, settings={"log_comment": f"{run}/{pair.name}/{side}"})
    client.command("SYSTEM FLUSH LOGS")
    costs = {
        name: (cpu, rows) for name, cpu, rows in client.query(_COSTS, parameters={"run": run}).result_rows
    }
    print(f"\n{'':<28}{'table ms':>10}{'view ms':>10}{'ratio':>8}{'table rows':>14}{'view rows':>14}")
    for pair in queries:
        (table, table_rows), (view, view_rows) = (
            costs[f"{run}/{pair.name}/{side}"] for side in ("table", "view")
        )
        print(
            f"{pair.name:<28}{table:>10.1f}{view:>10.1f}{view / table:>8.1f}{table_rows:>14,}{view_rows:>14,}"
        )


@click.command()
@click.option("--url", default="", help="as SVC_CLICKHOUSE_URL; without it a local server is started")
@click.option("--directory", type=click.Path(path_type=Path), help="where the local server's data stay")
@click.option("--events", default=1_000_000, show_default=True)
@click.option("--repeats", default=7, show_default=True, help="of each query, after a first one")
def main(url: str, directory: Path | None, events: int, repeats: int) -> None:
    """Create missing data, and measure the largest project's last 14 days."""
    with served(url, directory) as address:
        migrate(address)
        client = open_client(address, send_receive_timeout=3600)
        try:
            prepared(client, events)
            project, since = client.query(
                "SELECT argMax(project_id, n), toString(max(day) - 13) FROM"
                " (SELECT project_id, sum(n) AS n, max(toDate(hour)) AS day FROM project_hour GROUP BY project_id)"
            ).result_rows[0]
            # Not the largest issue, which is a large share of the project.
            issue, fingerprint = client.query(
                "SELECT leftPad(lower(hex(issue_id)), 16, '0'), fingerprints[1] FROM issues FINAL"
                " WHERE project_id = {p:UInt32} ORDER BY events DESC LIMIT 1 OFFSET 9",
                parameters={"p": project},
            ).result_rows[0]
            measure(client, pairs(project, since, issue, fingerprint), repeats)
        except ValueError as error:
            sys.exit(str(error))
        finally:
            client.close()


if __name__ == "__main__":
    main()
