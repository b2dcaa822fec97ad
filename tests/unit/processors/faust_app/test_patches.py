"""The patches wrap methods of Faust and aiokafka: if these change, somebody must check that the patches still fit."""

import hashlib
import inspect
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.consumer.group_coordinator import GroupCoordinator
from faust.stores.memory import Store
from faust.streams import Stream
from faust.tables.base import Collection
from faust.tables.manager import TableManager
from faust.tables.recovery import Recovery
from faust.transport.consumer import Consumer
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread, Transport
from faust.types import TP
from prometheus_client import CollectorRegistry

from processors.faust_app import patches
from processors.faust_app.app import Processors
from processors.faust_app.fence import Lease
from processors.faust_app.patches import FETCH_WAIT_MS, PlacedConsumer
from processors.metrics import ProcessorsMetrics
from processors.topic_names import names
from schemas.projects import ProjectRegistry
from schemas.settings import ProcessorsSettings, load

RESTORED = TP("events", 0)
WRAPPED: list[tuple[Callable[..., Any], str]] = [
    (Recovery.on_recovery_completed, "6ef567acf072e46d"),
    (Recovery._resume_streams, "d986a6710c1aca98"),
    (Consumer.perform_seek, "0e8c130ff4b0afd8"),
    (Consumer._new_offset, "1d2c7ea89a7ad4f1"),
    (Consumer.stop_flow, "cf7e875a2b0d40e8"),
    (Collection.on_recovery_completed, "b1526fb39ea0e77e"),
    (Store.apply_changelog_batch, "71863e3cd727aac2"),
    (Stream.noack_take, "f2cc2dbfc162d200"),
    (AIOKafkaConsumerThread._create_worker_consumer, "c2701bfc3e6f6cad"),
    (AIOKafkaConsumer.start, "2f1ba70443327538"),
    (GroupCoordinator._heartbeat_routine, "61d01028952239d0"),
]


@pytest.mark.parametrize(("method", "known"), WRAPPED, ids=lambda one: getattr(one, "__qualname__", ""))
def test_the_wrapped_code_is_the_code_that_was_read(method: Callable[..., Any], known: str) -> None:
    source = inspect.getsource(inspect.unwrap(method))
    assert hashlib.sha256(source.encode()).hexdigest()[:16] == known


def test_the_recovery_service_is_created_where_the_patch_replaces_it() -> None:
    getter = TableManager.recovery.fget  # type: ignore[attr-defined]
    assert "self._recovery = Recovery(" in inspect.getsource(getter)


class FakeConsumer(PlacedConsumer):
    """A consumer without a broker, of which one source partition is restored."""

    def __init__(self, coordinator: SimpleNamespace) -> None:
        self.lease = Lease(-1.0)
        self.sought: list[dict[TP, int]] = []
        self._committed_offset = {RESTORED: None, TP("seen", 0): None}
        self._thread = cast(Any, SimpleNamespace(_consumer=SimpleNamespace(_coordinator=coordinator)))

    def assignment(self) -> set[TP]:
        return set(self._committed_offset)

    async def next_offsets(self, assigned: set[TP]) -> dict[TP, int]:
        return {tp: 7 for tp in assigned if tp == RESTORED}

    async def seek_wait(self, offsets: Mapping[TP, int]) -> None:
        self.sought.append(dict(offsets))


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


async def test_the_seek_goes_to_the_restored_offsets_which_count_as_committed(consumer: FakeConsumer) -> None:
    await consumer.perform_seek()
    assert consumer.sought == [{RESTORED: 7}]
    assert consumer._committed_offset == {RESTORED: 7, TP("seen", 0): None}


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
    registry = ProcessorsMetrics(CollectorRegistry())
    settings = load(ProcessorsSettings, {"SVC_KAFKA_BOOTSTRAP": "127.0.0.1:1"})
    app = Processors(settings, names(settings, 1), ProjectRegistry(), registry).app
    app.finalize()
    thread = cast(PlacedConsumer, app.consumer)._new_consumer_thread()
    consumer = thread._create_worker_consumer(cast(Transport, app.transport))
    await consumer.stop()
    assert consumer._fetch_max_wait_ms == FETCH_WAIT_MS < 1_500
