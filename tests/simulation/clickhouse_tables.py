"""Tables of events and counts in the model of ClickHouse: parts, tokens, and mutations in progress."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from datetime import date, datetime
from itertools import chain
from typing import Any, Final, NamedTuple

import pyarrow as pa

from storage.tables.rollups import ROLLUPS

WINDOW: Final = 10_000
"""Tokens that a table remembers, as in the migrations."""
ROLLUP_TABLES: Final = tuple(rollup.table for rollup in ROLLUPS)
FED: Final = ("events", "payloads", *ROLLUP_TABLES)
"""The tables that `ingest` feeds."""
Key = tuple[int, bytes]
CountKey = tuple[int, date, int, int]
"""Project, day, fingerprint, days of retention."""


class Block:
    """An Arrow table whose columns become Python's values once, however often they are asked for."""

    def __init__(self, rows: pa.Table) -> None:
        self.rows = rows
        self._columns: dict[str, list[Any]] = {}

    def column(self, name: str) -> list[Any]:
        """The values of a column."""
        values = self._columns.get(name)
        if values is None:
            values = self._columns[name] = self.rows[name].to_pylist()
        return values


class Event(NamedTuple):
    """A row of `events` or `payloads`; `block` and `row` lead to the columns that only few statements need."""

    project: int
    id: bytes
    day: date
    fingerprint: int
    ts: datetime
    retention: int
    received: date
    """Of a payload, the day of the event."""
    block: Block
    row: int

    def column(self, name: str) -> Any:
        """A column's value."""
        return self.block.column(name)[self.row]

    @property
    def number(self) -> int:
        """The id as ClickHouse returns it."""
        return int.from_bytes(self.id, "little")


def count_key(event: Event) -> CountKey:
    """The key of rollups."""
    return event.project, event.day, event.fingerprint, event.retention


def partition_of(day: date, retention: int) -> str:
    """The partition of a row."""
    year, week, _ = day.isocalendar()
    return f"{year}-{week:02}-{retention}"


def events_of(block: Block, days: str) -> list[Event]:
    """The rows of a block for a table with its retention in the column `days`."""
    names = block.rows.column_names
    fingerprints = block.column("fingerprint") if "fingerprint" in names else [0] * block.rows.num_rows
    moments = block.column("ts")
    received = block.column("received") if "received" in names else moments
    return [
        Event(project, number, ts.date(), fingerprint, ts, kept, came.date(), block, row)
        for row, (project, number, ts, fingerprint, kept, came) in enumerate(
            zip(
                block.column("project_id"),
                block.column("id"),
                moments,
                fingerprints,
                block.column(days),
                received,
                strict=True,
            )
        )
    ]


class Mutation:
    """A deletion in the background: of the rows that a partition had when it was ordered."""

    def __init__(
        self, table: "Table", partition: str, command: str, find: Callable[[], Callable[[Any], bool]]
    ) -> None:
        self.table = table
        self.partition = partition
        self.command = command
        self.find = find
        """Returns the predicate for deleted events, or keys of a rollup; it reads its inputs when it is called."""
        table.blocks += 1
        self.blocks = table.blocks
        self.since: Counter[CountKey] = Counter()
        """The counts of a rollup since then."""


class Table:
    """A table of events or counts: its parts or sums, its block numbers, and the tokens that it remembers."""

    def __init__(self, window: int) -> None:
        self.window = window
        self.parts: dict[str, list[Event]] = {}
        self.counts: Counter[CountKey] = Counter()
        self.blocks = 0
        """The last block number that was taken, by an insert or a mutation."""
        self.last = 0
        """The number of the last insert."""
        self.keys: dict[int, set[CountKey]] = {}
        """Of a rollup's parts."""
        self.tokens: dict[tuple[Hashable, str], int] = {}
        """With the number of their block."""
        self.mutations: list[Mutation] = []
        """Not done yet, oldest first."""

    @property
    def rows(self) -> Iterator[Event]:
        """The rows of `events` or `payloads`."""
        return chain.from_iterable(self.parts.values())

    def knows(self, partition: Hashable, token: str) -> bool:
        """Whether a token is remembered; it holds within a partition."""
        return bool(token) and (partition, token) in self.tokens

    def remember(self, partition: Hashable, token: str) -> None:
        """Remember a token, and forget the oldest."""
        if token:
            self.tokens[partition, token] = self.blocks + 1
            while len(self.tokens) > self.window:
                del self.tokens[next(iter(self.tokens))]

    def add(self, events: Sequence[Event]) -> None:
        """Add a part."""
        self._take_number()
        self.parts[f"all_{self.blocks}"] = list(events)

    def count(self, counts: Counter[CountKey]) -> None:
        """Add counts."""
        self._take_number()
        self.counts.update(counts)
        self.keys[self.blocks] = set(counts)
        for mutation in self.mutations:
            mutation.since.update(counts)

    def _take_number(self) -> None:
        self.blocks += 1
        self.last = self.blocks

    def mutate(self) -> None:
        """Do the oldest mutation."""
        mutation = self.mutations.pop(0)
        meets = mutation.find()

        def goes(row: Any, day: date, retention: int) -> bool:
            return partition_of(day, retention) == mutation.partition and meets(row)

        emptied = set()
        for part, events in list(self.parts.items()):
            # A part keeps its number when a mutation changes its name.
            number = int(part.split("_")[1])
            if number <= mutation.blocks:
                self.parts[part] = [e for e in events if not goes(e, e.day, e.retention)]
                if not self.parts[part]:
                    del self.parts[part]
                    emptied.add(number)
        removed = [key for key in self.counts if goes(key, key[1], key[3])]
        for key in removed:
            self.counts[key] = mutation.since[key]
        for number in [number for number in self.keys if number <= mutation.blocks]:
            self.keys[number].difference_update(removed)
            if not self.keys[number]:
                del self.keys[number]
                emptied.add(number)
        # A part without rows is dropped, and its token is forgotten.
        for known in [known for known, number in self.tokens.items() if number in emptied]:
            del self.tokens[known]
