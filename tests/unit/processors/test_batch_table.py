"""A partition's share is whole or it isn't there, whatever the framework still has in its buffers."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import faust
import pytest
from faust.types import TP

from broker.batch_producer import BatchProducer, WrittenBatch
from broker.message import Message
from processors.batch_table import BatchTable, PartitionStore
from processors.changelog import OWNER_KEY

TOPIC = "test.seen"


async def nothing(partitions: set[int]) -> None:
    pass


@pytest.fixture
def store(tmp_path: Any) -> PartitionStore:
    app = faust.App("test", broker="kafka://127.0.0.1:1", store="memory://", datadir=str(tmp_path))
    return BatchTable(app, "seen", TOPIC, 4, cast(BatchProducer, None), nothing)._new_store()


def read(offset: int, key: bytes) -> Any:
    return SimpleNamespace(offset=offset, key=key, value=b"v", headers=[])


def reached(store: PartitionStore, partition: int) -> int | None:
    return store.persisted_offset(TP(TOPIC, partition))


def test_a_share_that_was_read_is_read_on_from_where_it_ends(store: PartitionStore) -> None:
    store.hold({0, 1}, 5)
    assert store.read_records(0, [read(7, b"a"), read(9, b"b")], 5)
    assert (reached(store, 0), reached(store, 1)) == (9, None)
    store.hold({0}, 6)
    assert (reached(store, 0), store.parts[0]) == (9, {b"a": b"v", b"b": b"v"})


def test_own_writes_need_not_be_read(store: PartitionStore) -> None:
    store.hold({0}, 5)
    store.read_records(0, [read(7, b"a")], 5)
    store.written(0, [(b"a", None), (b"c", b"w")], 12)
    assert (reached(store, 0), store.parts[0]) == (12, {b"c": b"w"})


def test_a_partition_that_left_is_forgotten_with_its_place(store: PartitionStore) -> None:
    store.hold({0}, 5)
    store.read_records(0, [read(7, b"a")], 5)
    store.hold(set(), 6)
    store.hold({0}, 7)
    assert (reached(store, 0), dict(store.parts)) == (None, {})


def test_records_fetched_for_an_earlier_assignment_are_not_taken_over(store: PartitionStore) -> None:
    store.hold({0}, 5)
    store.hold(set(), 6)
    assert not store.read_records(0, [read(8, b"late")], 6)
    store.hold({0}, 7)
    assert not store.read_records(0, [read(9, b"late")], 5)
    assert (reached(store, 0), dict(store.parts)) == (None, {})


def test_late_writes_make_no_share(store: PartitionStore) -> None:
    store.hold({1}, 5)
    store.written(0, [(b"c", b"w")], 12)
    store.hold({0}, 6)
    assert (reached(store, 0), dict(store.parts)) == (None, {})


class Topic:
    """A topic of one partition."""

    def __init__(self) -> None:
        self.keys: list[bytes | None] = []

    async def write(self, _topic: str, _partition: int, messages: Sequence[Message]) -> list[WrittenBatch]:
        first = len(self.keys)
        self.keys += [message.key for message in messages]
        return [WrittenBatch(first, len(self.keys) - 1)]


async def test_a_partition_is_opened_once_and_again_when_it_returns(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = faust.App("test", broker="kafka://127.0.0.1:1", store="memory://", datadir=str(tmp_path))
    topic, tp = Topic(), TP(TOPIC, 0)
    monkeypatch.setattr(faust.App, "consumer_generation_id", 5, raising=False)
    table = BatchTable(app, "seen", TOPIC, 4, cast(BatchProducer, topic), nothing, owner="a")
    await table.on_rebalance({tp}, set(), {tp}, 4)
    assert topic.keys == []
    await table.on_rebalance({tp}, set(), set(), 5)
    await table.on_rebalance({tp}, set(), set(), 5)
    assert topic.keys == [OWNER_KEY]
    await table.on_rebalance(set(), {tp}, set(), 5)
    await table.on_rebalance({tp}, set(), {tp}, 5)
    assert topic.keys == [OWNER_KEY, OWNER_KEY]


async def test_after_a_recovery_the_owner_rewrites_values_hidden_by_a_dropped_record(
    tmp_path: Any,
) -> None:
    app = faust.App("test", broker="kafka://127.0.0.1:1", store="memory://", datadir=str(tmp_path))
    topic, tp = Topic(), TP(TOPIC, 0)
    table = BatchTable(app, "seen", TOPIC, 4, cast(BatchProducer, topic), nothing)
    table._parts.hold({0}, 5)
    late = read(9, b"k")
    late.headers = [("epoch", b"3")]
    table._parts.read_records(0, [read(7, OWNER_KEY), late], 5)
    topic.keys = [None] * 10
    await table.on_recovery_completed({tp}, set())
    assert topic.keys[10:] == [b"k"]
    assert reached(table._parts, 0) == 10
