"""The mark of a server whose tables are replicated: its numbers count in each partition, and tokens age."""

from typing import Any

import pytest
from msgspec import Struct

from storage.client import LIFE
from storage.exactly_once.block_tokens import is_reliable
from storage.exactly_once.server_state import STATE, TABLES, deduplication_window, server_state
from storage.tables.migrations.replicated import WINDOW_SECONDS

NOW = 1_800_000_000
WEEK = WINDOW_SECONDS // 2
ENGINE = (
    "ReplicatedMergeTree('/p', '{replica}') ORDER BY id SETTINGS replicated_deduplication_window = 100, "
    f"replicated_deduplication_window_seconds = {WINDOW_SECONDS}"
)


class Answer(Struct):
    result_rows: list[list[Any]]


class Server(Struct):
    """A client of a server whose tables have one number of blocks each."""

    number: int = 10
    partitions: tuple[str, ...] = ("90-20270111",)
    now: int = NOW
    engine: str = ENGINE
    pauses: int = 0

    def query(self, sql: str, **_: Any) -> Answer:
        if sql == LIFE:
            return Answer([["7b0f7b0e-0000-4000-8000-000000000001"]])
        assert sql == STATE
        names = (*TABLES, "insert_pauses")
        return Answer(
            [[name, self.engine, self.number, self.pauses, [*self.partitions], self.now] for name in names]
        )


def reliable(before: Server, after: Server) -> bool:
    return is_reliable(server_state(before).mark, server_state(after))  # type: ignore[arg-type]


def test_the_same_partitions_in_the_same_week_keep_the_mark() -> None:
    assert reliable(Server(), Server(now=NOW + 60))
    assert server_state(Server()).windows == (100,) * len(TABLES)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "after",
    [
        Server(partitions=("90-20270111", "90-20270118")),
        Server(partitions=()),
        Server(now=NOW + WEEK),
    ],
    ids=["a partition is new", "a partition is dropped", "a week later"],
)
def test_numbers_and_age_make_the_mark_another(after: Server) -> None:
    assert not reliable(Server(), after)


def test_tables_that_are_not_replicated_know_neither() -> None:
    plain = ENGINE.removeprefix("Replicated").replace("replicated_", "non_replicated_")
    assert reliable(Server(engine=plain), Server(engine=plain, partitions=(), now=NOW + WEEK))


@pytest.mark.parametrize(
    ("engine", "window"),
    [
        (ENGINE, 100),
        ("ReplicatedMergeTree('/p', 'r') ORDER BY id SETTINGS index_granularity = 8192", 1000),
        ("MergeTree ORDER BY id SETTINGS non_replicated_deduplication_window = 10000", 10000),
        ("MergeTree ORDER BY id", 0),
        ("SharedMergeTree ORDER BY id", 0),
    ],
)
def test_a_table_remembers_as_many_tokens_as_its_engine_says(engine: str, window: int) -> None:
    assert deduplication_window(engine) == window


def test_no_token_holds_that_was_planned_in_a_pause_or_is_repeated_in_one() -> None:
    paused = Server(pauses=1)
    assert not reliable(paused, Server())
    assert not reliable(Server(), paused)
    assert not reliable(paused, paused)
