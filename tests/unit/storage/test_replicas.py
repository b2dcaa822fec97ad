"""Which replica is written to, on a model of Keeper and the replicas of a shard."""

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec import Struct, field

from storage import replicas
from storage.client import ClickHouseError
from storage.errors import AnotherServer
from storage.exactly_once.consistent_read import BLOCKS, RUNNING, NoConsistentRead, read_consistently
from storage.replicas import ACTIVE, QUORUMS, TABLES, WAITING, begin_session, lacks_majority, move
from storage.server_identity import RECORD, RECORD_SETTINGS, check_recorded

PATH = "/clickhouse/tables/1/svc/events/quorum/parallel"


class Shard(Struct):
    """The state that all replicas see, and the statements that were run on each.

    The state is the recorded replica, those with a session, and the blocks without a majority.
    """

    written: str = "first/a"
    active: set[str] = field(default_factory=lambda: {"a", "b", "c"})
    waiting: int = 0
    synced: list[str] = field(default_factory=list)
    fails: str = ""
    """The beginning of a statement that gets no answer."""


class Answer(Struct):
    result_rows: list[list[Any]]


class Replica:
    """A client of one replica."""

    def __init__(self, shard: Shard, server: str) -> None:
        self.shard = shard
        self.server = server
        self.sessions: list[Mapping[str, Any]] = []

    def get_client_setting(self, key: str) -> str | None:
        return "auto" if key == "insert_quorum" else None

    def query(
        self,
        sql: str,
        parameters: Mapping[str, Any] | None = None,
        settings: Mapping[str, Any] | None = None,
        **_: Any,
    ) -> Answer:
        values = parameters or {}
        answers: dict[str, list[list[Any]]] = {
            ACTIVE: [[int(values.get("name") in self.shard.active)]],
            TABLES: [["events"], ["migrations"]],
            QUORUMS: [[PATH]] if "events" in values.get("tables", ()) else [],
            WAITING.format(paths=f"'{PATH}'"): [[self.shard.waiting]],
            RUNNING: [[0]],
            BLOCKS: [[7]],
            "SELECT max(number), argMax(name, number) FROM migrations": [[5, "analysts"]],
        }
        return Answer(answers.get(sql) or self._recorded(sql, settings or {}))

    def _recorded(self, sql: str, settings: Mapping[str, Any]) -> list[list[Any]]:
        # Only so does each replica see values recorded on another.
        assert settings.items() >= RECORD_SETTINGS.items()
        if sql.startswith("SELECT argMax"):
            return [[(self.shard.written, "1/1")]]
        assert "replica_name" in sql
        self.sessions.append(settings)
        return [[int(self.shard.written == self.server)]]

    def command(
        self, sql: str, parameters: Mapping[str, Any] | None = None, settings: Mapping[str, Any] | None = None
    ) -> None:
        if self.shard.fails and sql.strip().startswith(self.shard.fails):
            raise ClickHouseError("no answer")
        if sql == RECORD:
            assert settings == RECORD_SETTINGS
            assert parameters is not None
            self.shard.written = parameters["server"]
            return
        assert sql.startswith("SYSTEM SYNC REPLICA ")
        assert self.shard.written == "moving from first/a", (
            "a session may begin before the replica is complete"
        )
        self.shard.synced.append(sql.rpartition(" ")[2])


@pytest.fixture
def shard() -> Shard:
    return Shard()


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The servers that answer, by address."""
    found = {"http://b": "second/b", "http://c": "third/c"}

    def server_id(url: str) -> str:
        if url not in found:
            raise ClickHouseError("doesn't answer")
        return found[url]

    monkeypatch.setattr(replicas, "server_id", server_id)
    return found


def moved(shard: Shard) -> None:
    move(Replica(shard, "second/b"), "http://b", "1/1", ("http://a", "http://c"))  # type: ignore[arg-type]


def test_a_session_begins_only_on_the_replica_that_is_written_to(shard: Shard) -> None:
    first, second = Replica(shard, "first/a"), Replica(shard, "second/b")
    session = begin_session(first, 2)  # type: ignore[arg-type]
    # The question is the session's first statement: none of the checks is newer than the session.
    assert first.sessions[0]["session_id"] == session["session_id"]
    assert session["session_check"] == 1
    with pytest.raises(AnotherServer):
        begin_session(second, 2)  # type: ignore[arg-type]


def test_another_replica_takes_the_place_of_a_stopped_one(shard: Shard, answering: dict[str, str]) -> None:
    shard.active = {"b", "c"}
    moved(shard)
    assert (shard.written, shard.synced) == ("second/b", ["events", "migrations"])
    with pytest.raises(AnotherServer):
        begin_session(Replica(shard, "first/a"), 2)  # type: ignore[arg-type]
    begin_session(Replica(shard, "second/b"), 2)  # type: ignore[arg-type]


def test_none_takes_the_place_of_one_that_has_a_session_with_keeper(
    shard: Shard, answering: dict[str, str]
) -> None:
    with pytest.raises(AnotherServer, match="stop its server"):
        moved(shard)
    assert (shard.written, shard.synced) == ("first/a", [])


def test_none_takes_the_place_of_one_that_answers(shard: Shard, answering: dict[str, str]) -> None:
    shard.active, answering["http://a"] = {"b", "c"}, "first/a"
    with pytest.raises(AnotherServer, match="stop its server"):
        moved(shard)
    assert (shard.written, shard.synced) == ("first/a", [])


def test_an_interrupted_move_blocks_writers_until_it_is_run_again(
    shard: Shard, answering: dict[str, str]
) -> None:
    shard.active, shard.fails = {"b", "c"}, "SYSTEM SYNC"
    with pytest.raises(ClickHouseError):
        moved(shard)
    for server in ("first/a", "second/b"):
        with pytest.raises(AnotherServer):
            begin_session(Replica(shard, server), 2)  # type: ignore[arg-type]
    with pytest.raises(AnotherServer, match="has not ended"):
        check_recorded(Replica(shard, "second/b"), "second/b", "1/1")  # type: ignore[arg-type]
    shard.active.add("a")
    with pytest.raises(AnotherServer, match="stop its server"):
        moved(shard)
    assert shard.written == "first/a"
    shard.active, shard.fails = {"b", "c"}, ""
    moved(shard)
    assert shard.written == "second/b"


def test_a_move_that_was_made_is_not_made_again(shard: Shard, answering: dict[str, str]) -> None:
    shard.written = "second/b"
    moved(shard)
    assert shard.synced == []


def test_a_block_without_a_majority_counts_as_an_insert_that_is_running(shard: Shard) -> None:
    client: Any = Replica(shard, "first/a")
    assert read_consistently((client,), ("events",), lambda blocks: blocks, seconds=0) == 7
    shard.waiting = 1
    assert lacks_majority(client, ("events",))
    with pytest.raises(NoConsistentRead):
        read_consistently((client,), ("events",), lambda blocks: blocks, seconds=0)

    def reading(blocks: int) -> int:
        shard.waiting = 1
        return blocks

    shard.waiting = 0
    with pytest.raises(NoConsistentRead):
        read_consistently((client,), ("events",), reading, seconds=0)
