"""Random short histories of blocks, their tokens, losses and repairs."""

import time
from collections.abc import Callable
from itertools import count
from random import Random
from typing import Any, Final

import msgspec
import pyarrow as pa
from msgspec.structs import replace

from schemas.chunks import ChunkEvent, Grouping
from schemas.times import iso
from storage.errors import UnknownUser
from storage.exactly_once.block_tokens import is_reliable
from storage.exactly_once.insert_pauses import in_force, paused
from storage.exactly_once.missing_rows import any_known, complete
from storage.exactly_once.repair_rollups import repair_rollups
from storage.exactly_once.server_state import server_state
from storage.maintain import rebuild_queries
from storage.maintain.erase.erase_user import erase_user
from storage.maintain.erase.erased_issues import IssueDescription
from storage.maintain.reconcile.duplicates import remove_duplicates
from storage.shards import alone
from storage.tables import record_rows
from storage.tables.event_columns import EventColumns
from tests.integration.simulation.stores import LATEST, ROLLUP_NAMES, Store, days_of, insert

PROJECTS: Final = (7, 8)
_DAY_MS: Final = 86_400_000
_NOON_MS: Final = time.time_ns() // 1_000_000 // _DAY_MS * _DAY_MS - _DAY_MS // 2
_KINDS: Final = (
    *("new", "new", "new", "repeat", "repeat", "repeat", "borrow", "lose", "lose", "complete", "complete"),
    *("known", "repair", "repair", "duplicates", "refuse", "pause", "judge", "judge"),
)
_ERASING: Final = (
    *("new", "new", "lose", "complete", "complete", "known", "repair", "duplicates"),
    *("erase", "erase", "erase", "rebuild", "rebuild"),
)
"""Operations with erasures, and with rebuilds of the processors' tables from the stored rows.

The server forgets the tokens of an emptied part some time later, so no block is repeated under its token."""
USER: Final = "ann"
_OPERATIONS: Final = 10
Operation = Callable[[Store], Any]
"""Does something, and returns the result to compare."""


class Block:
    """A block of events of a few projects; a wide one has two partitions."""

    def __init__(self, random: Random, token: str, *, wide: bool) -> None:
        self.token = token
        columns = EventColumns()
        retention, payload = random.choice((30, 90)), random.choice((30, 90))
        for _ in range(random.randint(1, 5)):
            project = random.choice(PROJECTS)
            moment = _NOON_MS - random.choice((0, 8) if wide else (0,)) * _DAY_MS
            content = {
                "timestamp": iso(moment),
                "error": {"type": "E", "message": "m"},
                "tags": {"project": str(project)},
                "user": {"id": random.choice((USER, "bob"))},
            }
            event = ChunkEvent(project, random.randbytes(16), moment, "js/1", msgspec.json.encode(content))
            # One fingerprint and one tag a project: so every rollup has the same keys, as in the model.
            grouping = Grouping(project, "v1", "frames", ())
            columns.add_row(event, grouping, retention, payload)
        self.rows: pa.Table = columns.table()
        self.packed: pa.Table = columns.packed()
        self.ids: list[bytes] = self.rows["id"].to_pylist()
        self.projects: list[int] = self.rows["project_id"].to_pylist()


class Histories:
    """The operations of one seed."""

    def __init__(self, seed: int, *, wide: bool, erasing: bool = False) -> None:
        self._random = Random(seed)
        self._seed = seed
        self._wide = wide
        self._blocks: list[Block] = []
        # In which tables a refused block takes a place among the tokens is not determined.
        possible = _ERASING if erasing else _KINDS if wide else [kind for kind in _KINDS if kind != "refuse"]
        kinds = ["new", *self._random.choices(possible, k=_OPERATIONS)]
        self.operations = [(kind, self._operation(kind)) for kind in kinds]

    def _new_block(self) -> Block:
        return Block(self._random, f"{self._seed}/{self._random.getrandbits(32)}", wide=self._wide)

    def _operation(self, kind: str) -> Operation:
        if kind == "new":
            self._blocks.append(self._new_block())
            block = self._blocks[-1]
        else:
            # A block that was refused and completed is never repeated under its token.
            block = self._random.choice(self._blocks) if kind != "refuse" else self._new_block()
        token = self._random.choice(self._blocks).token
        table = self._random.choice(("events", "payloads"))
        simple: dict[str, Operation] = {
            "new": lambda store: _planned(store, block),
            "repeat": lambda store: insert(store, block.packed, block.token),
            "borrow": lambda store: insert(store, block.packed, token),
            "known": lambda store: any_known(store.client, block.rows),
            "complete": lambda store: _completed(store, block),
            "repair": lambda store: repair_rollups(store.client, days_of(block.rows)),
            "duplicates": lambda store: remove_duplicates(store.client, table),
            "pause": _pauses,
            "erase": lambda store: _erased(store, block.projects[0]),
            "rebuild": _rebuilt,
            "judge": lambda store: _judged(store, block),
        }
        made = {"lose": self._lost, "refuse": self._refused}
        return simple[kind] if kind in simple else made[kind](block)

    def _lost(self, block: Block) -> Operation:
        table = self._random.choice(("events", "payloads", self._random.choice(ROLLUP_NAMES)))
        project = self._random.choice(block.projects)
        ids = self._random.sample(block.ids, self._random.randint(1, len(block.ids)))
        return lambda store: store.lose(table, project, ids)

    def _refused(self, block: Block) -> Operation:
        refused = self._random.choice(block.ids)

        def refuse(store: Store) -> Any:
            store.refuse([refused])
            try:
                answer = insert(store, block.packed, block.token)
                # Which of the other tables have a refused block is not determined; once it is completed, it is.
                done = [complete(store.client, block.rows, block.token) for _ in range(2)]
            finally:
                store.refuse([])
            return answer, [[row for row, _ in one.refused] for one in done], done[1].rows

        return refuse


def play(operations: list[tuple[str, Operation]]) -> Callable[[Store], list[Any]]:
    """A history: of each operation its answer, and the state it leaves."""
    return lambda store: [(kind, operation(store), store.state()) for kind, operation in operations]


_KEYS: Final = {"project_id": 2, "issue_id": 2, "at": 2, "id": 2, "source": 2, "sequence": 2, "version": 3}
"""How many values the columns have that make a key or a version."""


def rows_of_equal_keys(store: Store) -> list[Any]:
    """Blocks of rows with few keys and versions, some of them twice: the rows of each table after each block."""
    random, shown, numbers = Random(1), [], count(1)
    for table, schema in LATEST.items():
        for block in range(8):
            rows = [_row(schema, random, next(numbers)) for _ in range(random.randint(1, 3))]
            for _ in range(random.randint(1, 2)):
                insert(store, record_rows.table(schema, rows), f"{table}/{block}", table)
            shown.append(store.latest(table))
    return shown


def _row(schema: pa.Schema, random: Random, number: int) -> tuple[Any, ...]:
    return tuple(_value(field, random, number) for field in schema)


def _value(field: pa.Field, random: Random, own: int) -> Any:
    """A key's value of a few, and in the changing column a unique number."""
    number = random.randrange(_KEYS.get(field.name, 1))
    if field.name in {"count", "name", "message", "data"}:
        number = own
    if pa.types.is_list(field.type):
        return []
    if pa.types.is_string(field.type):
        return str(number)
    return bytes(16) if pa.types.is_fixed_size_binary(field.type) else number


def _planned(store: Store, block: Block) -> Any:
    """Insert a block for the first time, after reading the server's counters, as its plan does."""
    store.marks[block.token] = server_state(store.client).mark
    return insert(store, block.packed, block.token)


def _judged(store: Store, block: Block) -> Any:
    """Whether only blocks were counted since the plan, and whether a repeated block changes nothing.

    The block is repeated only where its token is reliable.
    """
    mark, state, before = store.marks[block.token], server_state(store.client), store.state()
    if is_reliable(mark, state):
        insert(store, block.packed, block.token)
    # The numbers of blocks are the server's own: mutations take some too.
    return replace(mark, blocks=state.mark.blocks) == state.mark, store.state() == before


def _completed(store: Store, block: Block) -> Any:
    done = complete(store.client, block.rows, block.token)
    return done.added, done.repaired, done.refused


def _erased(store: Store, project: int) -> Any:
    """Erase a user; which events are counted as erased, and how issues are told to be described."""
    descriptions: list[IssueDescription] = []
    try:
        report = erase_user(
            alone(store.client),
            project,
            USER,
            "o",
            lambda: None,
            lambda _, found: descriptions.extend(found),
            lambda _: None,
        )
    except UnknownUser:
        return "unknown user"
    rows = {table.table: (table.rows_before > 0, table.rows_after > 0) for table in report.tables[:2]}
    return report.events, report.before is None, rows, sorted(descriptions, key=lambda one: one.issue)


def _rebuilt(store: Store) -> Any:
    """The counts of each fingerprint, and the known ids."""
    counts = [
        replace(counted, users=sorted(counted.users))
        for counted in sorted(rebuild_queries.counted(store.client), key=lambda one: one.project)
    ]
    days = rebuild_queries.received_days(store.client, 5)
    since = rebuild_queries.since(store.client, PROJECTS[0], list(PROJECTS), 0)
    known = sorted((project, number) for project, number, _ in rebuild_queries.ids(store.client, 0))
    return counts, days, (since[0], sorted(since[1])), known


def _pauses(store: Store) -> Any:
    with paused(store.client) as pause:
        before = len(in_force(store.client))
        pause.extend(30.0)
        during = len(in_force(store.client))
    return before, during, len(in_force(store.client))
