"""The patches wrap methods of Faust and aiokafka: if these change, check that the patches still fit."""

import asyncio
import hashlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.consumer.fetcher import Fetcher
from aiokafka.consumer.group_coordinator import GroupCoordinator
from faust.streams import Stream
from faust.tables.base import Collection
from faust.tables.manager import TableManager
from faust.tables.recovery import Recovery
from faust.transport.consumer import Consumer
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread, Transport
from faust.types import TP
from prometheus_client import CollectorRegistry

from processors.faust_app import patches
from processors.faust_app.fence import Lease
from processors.faust_app.patches import FETCH_WAIT_MS, RECOVERY_WAIT_MS, PlacedConsumer, arrivals
from processors.faust_app.processors_app import Processors
from processors.processors_metrics import ProcessorsMetrics
from schemas.environment import load
from schemas.projects import ProjectRegistry
from schemas.settings import ProcessorsSettings

RESTORED, SEEN = TP("events", 0), TP("seen", 0)
WRAPPED: list[tuple[Callable[..., Any], str]] = [
    (Recovery.on_recovery_completed, "6ef567acf072e46d"),
    (Recovery._resume_streams, "d986a6710c1aca98"),
    (Consumer.perform_seek, "0e8c130ff4b0afd8"),
    (Consumer._new_offset, "1d2c7ea89a7ad4f1"),
    (Consumer.stop_flow, "cf7e875a2b0d40e8"),
    (Consumer.getmany, "4b168d84882a70d6"),
    (Consumer._drain_messages, "44a2500309e83c63"),
    (TableManager.on_start, "365dd25fbc0e0684"),
    (Recovery._seek_offsets, "19598ca63d94d250"),
    (Collection.on_recovery_completed, "b1526fb39ea0e77e"),
    (Recovery._set_recovery_started, "bcfebf81ae13fc75"),
    (Recovery._slurp_changelogs.fun, "7825c7e50f766d5a"),
    (Stream.noack_take, "f2cc2dbfc162d200"),
    (AIOKafkaConsumerThread._create_worker_consumer, "c2701bfc3e6f6cad"),
    (AIOKafkaConsumer.start, "2f1ba70443327538"),
    (Fetcher._get_actions_per_node, "1dab2cf937d165d0"),
    (GroupCoordinator._heartbeat_routine, "61d01028952239d0"),
]


@pytest.mark.parametrize(("method", "known"), WRAPPED, ids=lambda one: getattr(one, "__qualname__", ""))
def test_the_wrapped_code_is_the_code_that_was_read(method: Callable[..., Any], known: str) -> None:
    source = inspect.getsource(inspect.unwrap(method))
    assert hashlib.sha256(source.encode()).hexdigest()[:16] == known


def test_the_recovery_service_is_created_where_the_patch_replaces_it() -> None:
    getter = TableManager.recovery.fget  # type: ignore[attr-defined]
    assert "self._recovery = Recovery(" in inspect.getsource(getter)


def processors_app() -> Any:
    registry = ProcessorsMetrics(CollectorRegistry())
    settings = load(ProcessorsSettings, {"SVC_KAFKA_BOOTSTRAP": "127.0.0.1:1"})
    app = Processors(settings, 1, ProjectRegistry(), registry).app
    app.finalize()
    return app


class FakeConsumer(PlacedConsumer):
    """A consumer without a broker, of which one source partition is restored."""

    def __init__(self, coordinator: SimpleNamespace) -> None:
        self.lease = Lease(-1.0)
        self._delivered = asyncio.Event()
        self._delivered.set()
        self.sought: list[dict[TP, int]] = []
        self.committed: list[dict[TP, int]] = []
        self._committed_offset = {RESTORED: None, SEEN: None}
        self._thread = cast(Any, SimpleNamespace(_consumer=SimpleNamespace(_coordinator=coordinator)))

    def assignment(self) -> set[TP]:
        return set(self._committed_offset)

    async def next_offsets(self, assigned: set[TP]) -> dict[TP, int]:
        return {tp: 7 for tp in assigned if tp == RESTORED}

    async def seek_wait(self, partitions: Mapping[TP, int]) -> None:
        self.sought.append(dict(partitions))

    async def _commit(self, offsets: Mapping[TP, int]) -> bool:
        self.committed.append(dict(offsets))
        return True


async def test_the_tables_are_started_without_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    tables, started = processors_app().tables, list[str]()

    async def step(name: str, *_: float) -> None:
        started.append(name)

    for name in ("sleep", "_update_channels"):
        monkeypatch.setattr(tables, name, partial(step, name))
    monkeypatch.setattr(tables.recovery, "start", partial(step, "recovery"))
    await tables.on_start()
    assert started == ["_update_channels", "recovery"]


class Fetching:
    """A consumer that has no broker and whose fetches end when the test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.consumer = cast(PlacedConsumer, processors_app().consumer)
        self.polled: list[set[TP]] = []
        self.sought: list[Mapping[TP, int]] = []
        self.fetched: asyncio.Future[dict[TP, list[Any]]] = asyncio.get_running_loop().create_future()
        for name, fake in (("_getmany", self._getmany), ("_to_message", lambda _, record: record)):
            monkeypatch.setattr(self.consumer, name, fake)
        monkeypatch.setattr(self.consumer, "highwater", lambda _: 9)
        monkeypatch.setattr(self.consumer._thread, "seek_wait", self._seek_wait)
        self.consumer._active_partitions = {RESTORED, SEEN}
        self.consumer.resume_flow()

    async def _getmany(self, active_partitions: set[TP], timeout: float) -> dict[TP, list[Any]]:  # noqa: ARG002
        self.polled.append(set(active_partitions))
        return await self.fetched

    async def _seek_wait(self, partitions: Mapping[TP, int]) -> None:
        self.sought.append(partitions)


async def received(consumer: PlacedConsumer) -> list[tuple[TP, Any]]:
    return [one async for one in consumer.getmany(1.0)]


async def let_others_run() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.fixture
async def fetching(monkeypatch: pytest.MonkeyPatch) -> Fetching:
    return Fetching(monkeypatch)


async def test_a_seek_waits_for_the_fetch_under_way_whose_records_are_dropped(fetching: Fetching) -> None:
    receiving = asyncio.create_task(received(fetching.consumer))
    await let_others_run()
    fetching.consumer.stop_flow()
    seeking = asyncio.create_task(fetching.consumer.seek_wait({SEEN: 0}))
    await let_others_run()
    assert fetching.sought == []
    fetching.consumer.resume_flow()
    fetching.fetched.set_result({SEEN: ["a record that comes again after the seek"]})
    assert await receiving == []
    fetching.consumer.stop_flow()
    waiting = asyncio.create_task(received(fetching.consumer))
    await seeking
    assert fetching.sought == [{SEEN: 0}]
    waiting.cancel()


async def test_a_stop_ends_the_delivery_of_fetched_records(fetching: Fetching) -> None:
    fetching.fetched.set_result({SEEN: ["a", "b"]})
    delivery = fetching.consumer.getmany(1.0)
    delivered: tuple[TP, Any] = await anext(delivery)
    assert delivered == (SEEN, "a")
    fetching.consumer.stop_flow()
    fetching.consumer.resume_flow()
    assert [one async for one in delivery] == []


async def test_with_all_partitions_paused_nothing_is_fetched(fetching: Fetching) -> None:
    fetching.consumer.pause_partitions({RESTORED, SEEN})
    assert await received(fetching.consumer) == []
    assert fetching.polled == []


async def test_fetches_wait_for_records_shortly_until_a_recovery_has_ended(
    fetching: Fetching, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetcher, waits = SimpleNamespace(), list[float]()

    async def getmany(_: set[TP], timeout: float) -> dict[TP, list[Any]]:
        waits.append(timeout * 1000)
        return {}

    monkeypatch.setattr(fetching.consumer._thread, "_consumer", SimpleNamespace(_fetcher=fetcher))
    monkeypatch.setattr(fetching.consumer, "_getmany", getmany)
    for ended, wait_ms in ((False, RECOVERY_WAIT_MS), (True, FETCH_WAIT_MS), (False, RECOVERY_WAIT_MS)):
        cast(Any, fetching.consumer.app).fence.open = ended
        assert await received(fetching.consumer) == []
        assert (waits.pop(), fetcher._fetch_max_wait_ms) == (wait_ms, wait_ms)


class Shelf:
    """A table whose partition has moved where `held` is unset."""

    def __init__(self) -> None:
        self.read: list[int] = []
        self.held = True
        self.data = self

    def read_records(self, partition: int, records: Sequence[Any], generation: int) -> bool:
        assert (partition, generation) == (0, 3)
        if self.held:
            self.read += [record.offset for record in records]
        return self.held


TABLE = TP("svc.seen", 0)


class Recovering:
    """A recovery of a table's partition, whose last record has offset 5."""

    def __init__(self, fetching: Fetching, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fetching = fetching
        app: Any = fetching.consumer.app
        monkeypatch.setattr(type(app), "consumer_generation_id", 3, raising=False)
        self.recovery, self.shelf = app.tables.recovery, Shelf()
        self.recovery.active_tps.add(TABLE)
        self.recovery.tp_to_table[TABLE] = self.shelf
        self.recovery.active_offsets[TABLE], self.recovery.active_highwaters[TABLE] = 1, 5
        fetching.consumer._active_partitions = {TABLE, RESTORED}
        self.recovery._set_recovery_started()

    async def fetches(self, *offsets: int, stopped: bool = False) -> list[tuple[TP, Any]]:
        """Returns delivered records other than the table's."""
        receiving = asyncio.create_task(received(self.fetching.consumer))
        await let_others_run()
        if stopped:
            self.fetching.consumer.stop_flow()
            self.fetching.consumer.resume_flow()
        records = [SimpleNamespace(offset=offset) for offset in offsets]
        self.fetching.fetched.set_result({TABLE: records, RESTORED: ["a"]})
        self.fetching.fetched = asyncio.get_running_loop().create_future()
        return await receiving

    @property
    def ended(self) -> bool:
        assert self.recovery.in_recovery != self.recovery.signal_recovery_end.is_set()
        return not self.recovery.in_recovery


@pytest.fixture
async def recovering(fetching: Fetching, monkeypatch: pytest.MonkeyPatch) -> Recovering:
    return Recovering(fetching, monkeypatch)


async def test_a_table_is_read_in_bulk_until_its_end(recovering: Recovering) -> None:
    assert await recovering.fetches(1, 2, 4) == [(RESTORED, "a")]
    assert (recovering.shelf.read, recovering.ended) == ([2, 4], False)
    assert await recovering.fetches(5) == [(RESTORED, "a")]
    assert (recovering.shelf.read, recovering.ended) == ([2, 4, 5], True)
    recovering.recovery._set_recovery_started()
    assert not recovering.ended


async def test_records_that_a_table_does_not_take_end_no_recovery(recovering: Recovering) -> None:
    recovering.shelf.held = False
    await recovering.fetches(2, 5)
    assert (recovering.recovery.active_offsets[TABLE], recovering.ended) == (1, False)


async def test_a_stop_during_the_fetch_keeps_its_records_from_the_table(recovering: Recovering) -> None:
    assert await recovering.fetches(2, 5, stopped=True) == []
    assert (recovering.shelf.read, recovering.ended) == ([], False)


@pytest.fixture
def coordinator() -> SimpleNamespace:
    async def heartbeat() -> bool:
        return answers.pop(0)

    answers = [False, True]
    return SimpleNamespace(_do_heartbeat=heartbeat, _client=SimpleNamespace())


@pytest.fixture
def consumer(coordinator: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> FakeConsumer:
    async def seek_to_committed(_: Consumer) -> None:
        pass

    async def assign(_: Consumer, assigned: set[TP], generation_id: int) -> None:
        pass

    monkeypatch.setattr(Consumer, "perform_seek", seek_to_committed)
    monkeypatch.setattr(Consumer, "on_partitions_assigned", assign)
    monkeypatch.setattr(patches, "pause_metadata_retries", lambda _: None)
    return FakeConsumer(coordinator)


@pytest.mark.parametrize(("committed", "commits"), [(None, [{RESTORED: 7}]), (5, [{RESTORED: 7}]), (7, [])])
async def test_the_progress_of_a_stage_is_committed_without_new_events(
    consumer: FakeConsumer, committed: int | None, commits: list[dict[TP, int]]
) -> None:
    consumer._committed_offset[RESTORED] = committed
    await consumer.perform_seek()
    assert consumer.committed == commits


async def test_an_assignment_and_an_answered_heartbeat_alone_renew_the_lease(
    consumer: FakeConsumer, coordinator: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    renewed: list[bool] = []
    monkeypatch.setattr(consumer.lease, "renew", lambda: renewed.append(True))
    await consumer.on_partitions_assigned(set())
    await consumer.on_partitions_assigned(set())
    assert renewed == [True, True]
    assert [await coordinator._do_heartbeat(), len(renewed)] == [False, 2]
    assert [await coordinator._do_heartbeat(), len(renewed)] == [True, 3]


async def test_a_fetch_that_finds_nothing_keeps_no_other_request_waiting_for_long() -> None:
    app = processors_app()
    thread = cast(PlacedConsumer, app.consumer)._new_consumer_thread()
    consumer = thread._create_worker_consumer(cast(Transport, app.transport))
    await consumer.stop()
    assert consumer._fetch_max_wait_ms == FETCH_WAIT_MS < 1_500


async def test_a_batch_waits_for_a_record_without_looking_for_one_and_begins_with_it() -> None:
    waits: list[float | None] = []

    class Waiting:
        processor: Any = None

        async def wait_for_stopped(self, condition: asyncio.Event, timeout: float | None = None) -> bool:
            waits.append(timeout)
            if timeout is None:
                await condition.wait()
            return False

        def add_processor(self, processor: Any) -> None:
            self.processor = processor

    stream: Any = Waiting()
    full = asyncio.Event()
    arrived = arrivals(stream)
    batch = asyncio.create_task(stream.wait_for_stopped(full, timeout=0.01))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert (batch.done(), waits) == (False, [None])
    assert stream.processor("record") == "record"
    assert await batch is False
    assert waits == [None, 0.01]
    arrived.clear()
    batch = asyncio.create_task(stream.wait_for_stopped(full, timeout=0.01))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert waits == [None, 0.01, None]
    batch.cancel()
