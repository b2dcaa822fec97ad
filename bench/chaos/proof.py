"""The invariants that must hold once the system is idle, as claims with expected and actual values."""

from collections.abc import Iterable, Iterator, Set
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import msgspec

from bench.report import Claim
from schemas.ids import event_partition
from schemas.settings import MigrateSettings
from storage.client import open_client
from storage.maintain.reconcile.reconcile import BOUNDED, compare
from storage.shards import WHOLE_SETTINGS, open_servers, whole_url
from storage.tables.erased import ERASED
from storage.tables.rollups import ROLLUPS, Rollup

_OF_EVENTS = {
    "first": "min(ts)",
    "last": "max(ts)",
    "users": "uniqCombinedIf(12)(user_hash, user_hash != 0)",
}
_OF_ROLLUP = {"first": "min(first)", "last": "max(last)", "users": "uniqCombinedMerge(12)(users)"}


class Store:
    """Plain SQL on the tables, independent of the product's reader."""

    def __init__(self, settings: MigrateSettings) -> None:
        self._settings = settings
        self._client = open_client(whole_url(settings, settings.clickhouse_url), settings=WHOLE_SETTINGS)

    def number(self, sql: str) -> int:
        """The single number that a query returns."""
        return int(self._client.query(sql, settings=dict(BOUNDED)).result_rows[0][0] or 0)

    def reconciled(self) -> int:
        """The number of differences that `svc reconcile` finds."""
        with open_servers(self._settings) as servers:
            return len(compare(servers, datetime.now(UTC).date()).differences)

    def elsewhere(self) -> int:
        """The number of events that are not on the server of their partition."""
        count = 0
        with open_servers(self._settings) as servers:
            for server in servers:
                for project, number in server.own.query("SELECT project_id, id FROM events").result_rows:
                    partition = event_partition(
                        project, number.to_bytes(16, "big"), self._settings.topic_partitions
                    )
                    count += not server.shard.partitions_owned([partition])
        return count

    def comments(self) -> list[str]:
        """The text of every comment on an issue."""
        rows = self.rows("SELECT data FROM issue_activity FINAL WHERE kind = 'commented'")
        return [msgspec.json.decode(data)["text"] for (data,) in rows]

    def ids(self) -> set[UUID]:
        """Every stored event's id."""
        return {UUID(int=row[0]) for row in self._client.query("SELECT id FROM events").result_rows}

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        return [tuple(row) for row in self._client.query(sql).result_rows]

    def close(self) -> None:
        """Close the connection."""
        self._client.close()


def stored(store: Store) -> int:
    """Rows in `events`."""
    return store.number("SELECT count() FROM events")


def folded(store: Store) -> int:
    """Events that the issues have counted."""
    return store.number("SELECT sum(events) FROM issues FINAL WHERE merged_into = 0")


def erased(store: Store) -> int:
    """Events that were erased."""
    return store.number(f"SELECT sum(n) FROM ({ERASED})")


def progress(store: Store) -> int:
    """The sum of stored, erased and folded events; constant once the system is idle."""
    return stored(store) + erased(store) + folded(store)


def claims(
    store: Store, sent: Iterable[UUID], accepted: int, erasable: Set[UUID] = frozenset()
) -> list[Claim]:
    """The claims after `sent` distinct ids were accepted in `accepted` events, and some of `erasable` erased."""
    ids = set(sent)
    have, removed = store.ids(), erased(store)
    n = len(ids) - removed
    result = [
        Claim("distinct ids sent = rows in events, and erased", n, stored(store)),
        Claim("ids sent but neither stored nor erased", removed, len(ids - have)),
        Claim("ids erased of users that stay", 0, len(ids - have - erasable)),
        Claim("ids stored but not sent", 0, len(have - ids)),
        Claim("distinct ids in events", n, len(have)),
        Claim("payloads", n, store.number("SELECT count() FROM payloads")),
        Claim("distinct ids of payloads", n, store.number("SELECT uniqExact(project_id, id) FROM payloads")),
        *rollup_claims(store),
        Claim("events on another server than their partition's", 0, store.elsewhere()),
        Claim("events that issues have counted", len(ids), folded(store)),
        Claim(
            "issues whose count differs from the distinct ids of their fingerprints",
            0,
            store.number(_DIFFERING),
        ),
        Claim("events without an issue", 0, store.number(_UNGROUPED)),
    ]
    outcomes = dict(store.rows("SELECT outcome, sum(count) FROM outcomes FINAL GROUP BY outcome"))
    counts = {name: int(outcomes.get(name, 0)) for name in ("accepted", "duplicate", "deadLettered")}
    return [
        *result,
        Claim(
            "accepted = stored + erased + duplicate + deadLettered",
            counts["accepted"],
            len(ids) + counts["duplicate"] + counts["deadLettered"],
        ),
        Claim("dead letters", 0, counts["deadLettered"]),
        Claim("differences by project and day that reconciling finds", 0, store.reconciled()),
        # A batch whose answer was lost is repeated, so the outcome can only be greater.
        Claim("answered 202 beyond the outcome accepted", 0, max(0, accepted - counts["accepted"])),
    ]


def rollup_claims(store: Store) -> Iterator[Claim]:
    """Every rollup agrees with `events`, in total and for each key."""
    for rollup in ROLLUPS:
        there = "sum(length(tags))" if rollup.tags else "count()"
        expected, found = (f"SELECT {there} FROM events", f"SELECT sum(n) FROM {rollup.table}")
        yield Claim(f"events in {rollup.table}", store.number(expected), store.number(found))
        yield Claim(
            f"keys of {rollup.table} that differ from events", 0, store.number(_keys_differing(rollup))
        )


def _keys_differing(rollup: Rollup) -> str:
    """A query that counts the keys whose count, first, last or users differ from their events."""
    keys = ", ".join(f"{sql} AS {name}" for name, sql in rollup.keys)
    unfolded = "ARRAY JOIN mapKeys(tags) AS k, mapValues(tags) AS v" if rollup.tags else ""
    there = ", ".join(["count()", *(_OF_EVENTS[state] for state in rollup.states)])
    here = ", ".join(["sum(n)", *(_OF_ROLLUP[state] for state in rollup.states)])
    return f"""
        SELECT count()
        FROM (SELECT {keys}, tuple({there}) AS wanted FROM events {unfolded} GROUP BY {rollup.names}) AS e
        FULL OUTER JOIN
            (SELECT {rollup.names}, tuple({here}) AS found FROM {rollup.table} GROUP BY {rollup.names}) AS r
            USING ({rollup.names})
        WHERE wanted != found"""


_DIFFERING = f"""
SELECT count() FROM
(
    SELECT project_id, issue_id, any(i.counted) AS counted, sum(e.n) AS stored
    FROM
        (SELECT project_id, issue_id, events AS counted, arrayJoin(fingerprints) AS fingerprint
         FROM issues FINAL WHERE deleted = 0 AND merged_into = 0) AS i
        LEFT JOIN
        (
            SELECT project_id, fingerprint, sum(n) AS n
            FROM
            (
                SELECT project_id, fingerprint, uniqExact(id) AS n FROM events GROUP BY project_id, fingerprint
                UNION ALL SELECT project_id, fingerprint, n FROM ({ERASED})
            )
            GROUP BY project_id, fingerprint
        ) AS e
        USING (project_id, fingerprint)
    GROUP BY project_id, issue_id
)
WHERE counted != stored
"""
_UNGROUPED = """
SELECT count() FROM events
WHERE (project_id, fingerprint) NOT IN
    (SELECT project_id, arrayJoin(fingerprints) FROM issues FINAL WHERE deleted = 0 AND merged_into = 0)
"""
