"""What must hold when everything has come to rest; each line names a claim and what was found."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

import clickhouse_connect
from msgspec import Struct

ROLLUPS = ("issue_day", "issue_day_er", "issue_hour", "project_hour")


class Claim(Struct, frozen=True):
    """A claim, what it expects and what was found."""

    text: str
    expected: int
    found: int

    @property
    def holds(self) -> bool:
        """Whether it is so."""
        return self.expected == self.found


class Store:
    """Plain SQL on the tables, apart from the product's own reader."""

    def __init__(self, url: str) -> None:
        self._client = clickhouse_connect.get_client(dsn=url)

    def number(self, sql: str) -> int:
        """The one number that a query gives."""
        return int(self._client.query(sql).result_rows[0][0] or 0)

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


def progress(store: Store) -> int:
    """Events stored and events folded together; it stands still once everything has come to rest."""
    return stored(store) + folded(store)


def claims(store: Store, sent: Iterable[UUID], accepted: int) -> list[Claim]:
    """Everything that must hold of the tables once `sent` distinct ids were accepted in `accepted` events."""
    ids = set(sent)
    n, have = len(ids), store.ids()
    found = [
        Claim("distinct ids sent = rows in events", n, stored(store)),
        Claim("ids sent but not stored", 0, len(ids - have)),
        Claim("ids stored but not sent", 0, len(have - ids)),
        Claim("distinct ids in events", n, len(have)),
        Claim("payloads", n, store.number("SELECT count() FROM payloads")),
        Claim("distinct ids of payloads", n, store.number("SELECT uniqExact(project_id, id) FROM payloads")),
        *(Claim(f"events in {table}", n, store.number(f"SELECT sum(n) FROM {table}")) for table in ROLLUPS),
        Claim(
            "tags in tag_day",
            store.number("SELECT sum(length(tags)) FROM events"),
            store.number("SELECT sum(n) FROM tag_day"),
        ),
        Claim("events that issues have counted", n, folded(store)),
        Claim("issues whose count differs from their rows", 0, store.number(_DIFFERING)),
    ]
    outcomes = dict(store.rows("SELECT outcome, sum(count) FROM outcomes FINAL GROUP BY outcome"))
    got = {name: int(outcomes.get(name, 0)) for name in ("accepted", "duplicate", "deadLettered")}
    return [
        *found,
        Claim(
            "accepted = stored + duplicate + deadLettered",
            got["accepted"],
            n + got["duplicate"] + got["deadLettered"],
        ),
        Claim("dead letters", 0, got["deadLettered"]),
        # A batch is sent again when its answer was lost, so the outcome can only be greater.
        Claim("answered 202 beyond the outcome accepted", 0, max(0, accepted - got["accepted"])),
    ]


_DIFFERING = """
SELECT count() FROM
  (SELECT project_id, fingerprint, count() AS n FROM events GROUP BY project_id, fingerprint) AS e
  FULL JOIN
  (SELECT project_id, arrayJoin(fingerprints) AS fingerprint, events AS n FROM issues FINAL) AS i
  USING (project_id, fingerprint)
WHERE e.n != i.n
"""
