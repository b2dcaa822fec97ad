"""Reads the counts that the audit compares, from the parts of the tables since its last reading.

A part never changes, so its counts are read once. A merged part is read again, which costs a small share of
the merge itself. If a part is damaged, deleted from or lost, its counts are dropped with it.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from msgspec import Struct

from schemas.times import OLDEST
from storage.client import ClickHouseError, Client
from storage.maintain.audit.differences import HOUR, AuditReading, EventCounts
from storage.maintain.audit.retention_history import read_retention

WINDOW_HOURS: Final = 24
_MINUTES_HOURS: Final = 2
"""Hours counted by the minute; older ones by the hour."""
_MARGIN: Final = HOUR
"""Clocks differ, and an event's time may be minutes after its receipt."""
_QUERY_ROWS: Final = 20_000_000
"""At the start a whole day is read: each query stays short."""
_QUERY_PARTS: Final = 1_000
"""A parameter has 128 KiB at most."""
_TRIES: Final = 10
SETTINGS: Final = {
    "max_threads": 1,
    "max_memory_usage": 1 << 30,
    "max_bytes_before_external_group_by": 256 << 20,
    "max_execution_time": 60,
    "priority": 10,
}
_PARTS: Final = """
    SELECT name, partition_id, min_block_number, max_block_number, toUnixTimestamp(modification_time), rows
    FROM system.parts
    WHERE active AND database = currentDatabase() AND table = {table:String}"""
_COUNTS: Final = """
    SELECT _part, project_id, toUnixTimestamp({slot}) AS slot, toInt64({number}) AS n FROM {table}
    WHERE _part IN {{parts:Array(String)}} AND {time} >= toDateTime({{since:UInt32}}, 'UTC')
    GROUP BY _part, project_id, slot"""
_SLOT: Final = (
    "if({time} >= toDateTime({{minutes:UInt32}}, 'UTC'), toStartOfMinute({time}), toStartOfHour({time}))"
)
_OUTCOME_SLOT: Final = _SLOT.format(time="minute")
_CHANGED: Final = f"""
    SELECT DISTINCT toUnixTimestamp({_OUTCOME_SLOT}) FROM outcomes
    WHERE _part IN {{parts:Array(String)}}
        AND minute >= toDateTime({{since:UInt32}}, 'UTC')"""  # noqa: S608 - our own text
_OUTCOMES: Final = f"""
    SELECT project_id, toUnixTimestamp({_OUTCOME_SLOT}) AS slot, toInt64(sumIf(count, outcome = 'accepted')),
        toInt64(sumIf(count, outcome != 'accepted'))
    FROM outcomes FINAL
    WHERE minute >= toDateTime({{first:UInt32}}, 'UTC') AND minute < toDateTime({{end:UInt32}}, 'UTC')
        AND slot IN {{slots:Array(UInt32)}}
        AND outcome IN ('accepted', 'duplicate', 'deadLettered')
    GROUP BY project_id, slot"""  # noqa: S608 - our own text
_ERASED: Final = """
    SELECT DISTINCT project_id FROM erasures FINAL
    WHERE kind = 'project' OR stage = 'deleting' OR ended >= toDateTime({since:UInt32}, 'UTC')"""


class AuditUnstable(ClickHouseError):
    """Parts were merged during every try to read them."""


class StoredPart(Struct, frozen=True):
    """An active part: its range of blocks, when it was written (Unix time), and its rows."""

    name: str
    partition: str
    first: int
    last: int
    written: int
    rows: int

    def covers(self, other: "StoredPart") -> bool:
        """Whether it has the other's blocks."""
        return self.partition == other.partition and self.first <= other.first and other.last <= self.last


class PartCounts:
    """The events of a table by project and slot: the sum of `number` over its recent parts."""

    def __init__(self, table: str, moment: str, number: str, slot: str) -> None:
        self._table = table
        self._sql = _COUNTS.format(
            slot=slot.format(time=moment),
            number=number,
            table=table,
            time=moment,
        )
        self._known: dict[str, EventCounts] = {}

    def read(self, client: Client, since: int, minutes: int) -> EventCounts:
        """The counts since a time; by the minute since `minutes`. Raises ClickHouseError."""
        for _ in range(_TRIES):
            # Events received since then were written since then.
            parts = [part for part in _parts(client, self._table) if part.written >= since - _MARGIN]
            names = [part.name for part in parts]
            for new in _bounded(part for part in parts if part.name not in self._known):
                self._read_parts(client, new, since, minutes)
            if all(name in self._known for name in names):
                self._known = {name: self._known[name] for name in names}
                return EventCounts.total(self._known.values())
        raise AuditUnstable(f"parts of {self._table} changed during {_TRIES} readings")

    def _read_parts(self, client: Client, names: Sequence[str], since: int, minutes: int) -> None:
        rows: dict[str, list[Sequence[Any]]] = {}
        values = {"parts": names, "since": since, "minutes": minutes}
        for name, *row in client.query(self._sql, parameters=values, settings=dict(SETTINGS)).result_rows:
            rows.setdefault(name, []).append(row)
        active = {part.name for part in _parts(client, self._table)}
        for name in names:
            # A part without rows has none, or was merged before the query.
            if name in rows or name in active:
                self._known[name] = EventCounts(*(zip(*rows.get(name, []), strict=True)))


class OutcomeCounts:
    """Counts of accepted events, and of duplicates with dead letters.

    Repeats in different parts count once, so whole slots are read again.
    """

    def __init__(self) -> None:
        self._known: list[StoredPart] = []
        self._accepted = EventCounts()
        self._ended = EventCounts()
        self._complete = False

    def read(self, client: Client, since: int, minutes: int) -> tuple[EventCounts, EventCounts]:
        """Both counts since a time; by the minute since `minutes`. Raises ClickHouseError."""
        for _ in range(_TRIES):
            parts = _parts(client, "outcomes")
            slots = self._changed(client, parts, since, minutes)
            if slots is not None:
                self._replace(client, slots, minutes)
                self._accepted = self._accepted.between(since, 1 << 32)
                self._ended = self._ended.between(since, 1 << 32)
                self._known, self._complete = parts, True
                return self._accepted, self._ended
        raise AuditUnstable(f"parts of outcomes changed during {_TRIES} readings")

    def _is_new(self, part: StoredPart) -> bool:
        """Whether it may have rows that no known part had: it isn't a merge of known parts alone."""
        within = [known for known in self._known if part.covers(known)]
        mutated = part.name.count("_") > 3 and all(known.name.count("_") <= 3 for known in within)
        return mutated or sum(known.last - known.first + 1 for known in within) != part.last - part.first + 1

    def _changed(
        self, client: Client, parts: Sequence[StoredPart], since: int, minutes: int
    ) -> set[int] | None:
        """The slots to read; None if a part was merged meanwhile.

        They are the slots of new parts, or all at first and after a part was lost.
        """
        if not self._complete or not all(any(p.covers(known) for p in parts) for known in self._known):
            end = int(time.time()) + HOUR
            return {*range(since, minutes, HOUR), *range(minutes, end, 60)}
        new, slots = [part for part in parts if self._is_new(part)], set[int]()
        if not new:
            return slots
        for names in _bounded(new):
            values = {"parts": names, "since": since, "minutes": minutes}
            rows = client.query(_CHANGED, parameters=values, settings=dict(SETTINGS)).result_rows
            slots |= {int(slot) for (slot,) in rows}
        active = {part.name for part in _parts(client, "outcomes")}
        return slots if {part.name for part in new} <= active else None

    def _replace(self, client: Client, slots: set[int], minutes: int) -> None:
        if not slots:
            return
        rows: list[Sequence[Any]] = []
        for hour in sorted({slot // HOUR for slot in slots}):
            within = sorted(slot for slot in slots if slot // HOUR == hour)
            values = {"slots": within, "first": within[0], "end": (hour + 1) * HOUR, "minutes": minutes}
            rows += client.query(_OUTCOMES, parameters=values, settings=dict(SETTINGS)).result_rows
        hours = {slot for slot in slots if slot < minutes}
        projects, times, accepted, ended = zip(*rows, strict=True) if rows else ((), (), (), ())
        for name, numbers in (("_accepted", accepted), ("_ended", ended)):
            rest = getattr(self, name).without(slots, hours)
            setattr(self, name, EventCounts.total([rest, EventCounts(projects, times, numbers)]))


class AuditTables:
    """All that an audit reads; remembers the counts of known parts."""

    def __init__(self) -> None:
        self._outcomes = OutcomeCounts()
        self._stored = PartCounts("events", "received", "count()", _SLOT)
        self._events = PartCounts("events", "ts", "count()", "toStartOfHour({time})")
        self._tables = {
            "payloads": PartCounts("payloads", "ts", "count()", "toStartOfHour({time})"),
            "issue_hour": PartCounts("issue_hour", "hour", "sum(n)", "{time}"),
            "project_hour": PartCounts("project_hour", "hour", "sum(n)", "{time}"),
        }

    def read(self, client: Client, since: int, now: int) -> AuditReading:
        """The counts since a time, an hour's start. Raises ClickHouseError."""
        minutes = max(since, now // HOUR * HOUR - (_MINUTES_HOURS - 1) * HOUR)
        accepted, ended = self._outcomes.read(client, since, minutes)
        return AuditReading(
            accepted=accepted,
            ended=ended,
            stored=self._stored.read(client, since, minutes),
            events=self._events.read(client, since, minutes),
            tables={name: table.read(client, since, minutes) for name, table in self._tables.items()},
        )


def erased_since(client: Client, since: int) -> set[int]:
    """Projects with an erasure since a time or in progress, and erased ones. Raises ClickHouseError."""
    return {int(row[0]) for row in client.query(_ERASED, parameters={"since": since}).result_rows}


def expiring(client: Client, since: int) -> set[int]:
    """Projects whose events may expire soon after receipt. Raises ClickHouseError.

    They do because the event's time precedes its receipt.
    """
    came = datetime.fromtimestamp(since, UTC).date()
    days = OLDEST.days + WINDOW_HOURS // 24 + 1
    return {
        project
        for project, history in read_retention(client).items()
        if history.shortest(came).events <= days
    }


def _bounded(parts: Iterable[StoredPart]) -> Iterator[list[str]]:
    """The names of parts, as many together as one query may read."""
    names, rows = list[str](), 0
    for part in parts:
        if names and (rows + part.rows > _QUERY_ROWS or len(names) == _QUERY_PARTS):
            yield names
            names, rows = [], 0
        names.append(part.name)
        rows += part.rows
    if names:
        yield names


def _parts(client: Client, table: str) -> list[StoredPart]:
    rows: Iterable[Sequence[Any]] = client.query(_PARTS, parameters={"table": table}).result_rows
    return [StoredPart(*row) for row in rows]
