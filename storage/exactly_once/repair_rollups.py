"""Repairs rollups by inserting their difference to `events`, without stopping the service."""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any, Final

import numpy as np
from clickhouse_connect.driver.external import ExternalData

from storage.client import INSERT_SETTINGS, ClickHouseError, Client, life, scalar
from storage.exactly_once.consistent_read import read_consistently
from storage.exactly_once.insert_pauses import Pause, paused
from storage.exactly_once.sessions import ComparisonSession
from storage.tables.rollups import ROLLUPS, Rollup, difference

Days = Iterable[tuple[int, date]]
"""Pairs of a project and a day."""
PAIRS: Final = np.dtype([("project_id", "<u4"), ("day", "<u2")])
_STRUCTURE: Final = "project_id UInt32, day Date"
_EPOCH: Final = date(1970, 1, 1)
_TRIES: Final = 6


def repair_rollups(client: Client, days: Days) -> dict[str, int]:
    """Repair every rollup on these days; returns the number of differing keys of each.

    Idempotent, also concurrently: see `_repair`. Raises ClickHouseError and NoConsistentRead.
    """
    weeks: dict[tuple[int, int], list[tuple[int, date]]] = {}
    for project, day in sorted(set(days)):
        weeks.setdefault(day.isocalendar()[:2], []).append((project, day))
    repaired = Counter({rollup.table: 0 for rollup in ROLLUPS})
    # A week at a time keeps the comparison and the pause of the writers short.
    for pairs in weeks.values():
        first, last = min(day for _, day in pairs), max(day for _, day in pairs)
        queries = {rollup: _difference(rollup, first, last) for rollup in ROLLUPS}
        repaired.update(repair_where(client, queries, external=_wanted(pairs)))
    return dict(repaired)


def _wanted(pairs: list[tuple[int, date]]) -> ExternalData:
    """The table `wanted`, since a text of many pairs would be too long for a statement."""
    rows = np.array([(project, (day - _EPOCH).days) for project, day in pairs], PAIRS)
    return ExternalData(file_name="wanted", data=rows.tobytes(), fmt="RowBinary", structure=_STRUCTURE)


def _difference(rollup: Rollup, first: date, last: date) -> str:
    events, there = (
        _where("ts", first, last, whole_day=False),
        _where(rollup.time, first, last, whole_day=True),
    )
    return difference(rollup, events, there)


def repair_where(
    client: Client,
    queries: Mapping[Rollup, str],
    seconds: float = 60.0,
    external: ExternalData | None = None,
) -> dict[str, int]:
    """Repair rollups by their queries; returns the number of differing keys of each.

    The queries are from `storage.tables.rollups.difference`, and may read an `external` table. The writers
    are asked to pause. Raises NoConsistentRead after `seconds` for a rollup; otherwise as `repair_rollups`.
    """
    # The pause lasts until the differences are inserted, so that no partly inserted block is retried in between.
    with paused(client) as pause:
        return {
            rollup.table: _repair(client, rollup, sql, seconds, pause, external)
            for rollup, sql in queries.items()
        }


def _repair(
    client: Client, rollup: Rollup, sql: str, seconds: float, pause: Pause, external: ExternalData | None
) -> int:
    """Insert the difference until there is none.

    The server refuses it once it was started since the comparison. Two repairs that see the same blocks find
    the same difference, and insert it under the same token: the second insert changes nothing. The token has
    the server's life too, because a killed server may remember a token of rows that it lost.
    """
    # Equal user states may differ in bytes, so keys and sums identify a difference. The text is made of our
    # own schema, numbers and dates.
    digest = f"SELECT sum(cityHash64({rollup.names}, n)) FROM ({sql})"  # noqa: S608

    own = ComparisonSession(client)

    def read(blocks: int) -> tuple[Mapping[str, Any], bytes, str]:
        session = own.begin()
        rows = client.raw_query(sql, fmt="Native", settings=dict(session), external_data=external)
        if not rows:
            return session, rows, ""
        return session, rows, f"{blocks}/{scalar(client, digest, settings=session, external=external)}"

    columns = [key for key, _ in rollup.keys] + ["n", *rollup.states]
    repaired = 0
    for _ in range(_TRIES):
        own.hold_back(pause)
        try:
            session, rows, difference_seen = read_consistently(
                (client,), ("events", rollup.table), read, seconds, pause
            )
            if not rows:
                break
            token = f"repair/{life(client)}/{rollup.table}/{difference_seen}"
            settings = {**INSERT_SETTINGS, **session, "insert_deduplication_token": token}
            done = client.raw_insert(rollup.table, columns, rows, settings=settings, fmt="Native")
        except ClickHouseError as error:
            own.stretch(error)
        else:
            repaired = repaired or int(done.written_rows)
    return repaired


def _where(column: str, first: date, last: date, *, whole_day: bool) -> str:
    moment = f"toDate({column})" if whole_day else column
    until = (
        f"{moment} <= '{last}'"
        if whole_day
        else f"{column} < toDateTime64('{last}', 3, 'UTC') + INTERVAL 1 DAY"
    )
    since = f"{moment} >= '{first}'" if whole_day else f"{column} >= toDateTime64('{first}', 3, 'UTC')"
    return (
        f"project_id IN (SELECT project_id FROM wanted) AND {since} AND {until}"  # noqa: S608 - our own text
        f" AND (project_id, toDate({column})) IN (SELECT project_id, day FROM wanted)"
    )
