"""An agent acknowledges only events that its stage has handled."""

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

from processors.faust_app.agents import Agent
from processors.faust_app.fence import Interrupted, RebalanceFence
from processors.grouper.grouper_stage import GrouperStage
from processors.positions import SourceRecord

GENERATION = 5


class RecordingStage:
    """A stage that holds partition 1."""

    def __init__(self, events: list["Event"]) -> None:
        self.partitions = {1}
        self.handled: list[tuple[int, int]] = []
        self._events = events
        self.interrupted = False

    async def handle_batch(self, by_partition: Mapping[int, Sequence[SourceRecord]]) -> None:
        assert not any(event.acknowledged for event in self._events)
        if self.interrupted:
            raise Interrupted
        self.handled += [(p, record.offset) for p, records in by_partition.items() for record in records]


class Event:
    """A record as Faust delivers it."""

    def __init__(self, partition: int, offset: int, generation: int = GENERATION) -> None:
        self.acknowledged = False
        self.message = SimpleNamespace(
            partition=partition,
            offset=offset,
            generation_id=generation,
            timestamp=1.5,
            key=None,
            value=None,
            headers=None,
        )

    def ack(self) -> None:
        self.acknowledged = True


async def handled(*events: Event, opened: bool = True, interrupted: bool = False) -> list[tuple[int, int]]:
    stage, fence = RecordingStage(list(events)), RebalanceFence()
    stage.interrupted = interrupted
    fence.open = opened

    class Stream:
        async def wait_for_stopped(self, *_: Any, **__: Any) -> bool:
            return False

        def add_processor(self, processor: Any) -> None:
            pass

        async def noack_take(self, limit: int, within: float) -> Any:
            assert (limit, within) == (40, 0.1)
            yield list(events)

    agent = Agent("grouper", cast(GrouperStage, stage), fence, max_records=40, seconds=0.1)
    await agent.function(lambda: GENERATION)(Stream())  # type: ignore[arg-type]
    return stage.handled


async def test_a_batch_is_acknowledged_once_it_is_handled() -> None:
    events = [Event(1, 7), Event(1, 8)]
    assert await handled(*events) == [(1, 7), (1, 8)]
    assert all(event.acknowledged for event in events)


async def test_records_of_other_partitions_and_generations_are_dropped_unacknowledged() -> None:
    events = [Event(2, 7), Event(1, 8, GENERATION - 1), Event(1, 9)]
    assert await handled(*events) == [(1, 9)]
    assert [event.acknowledged for event in events] == [False, False, True]


async def test_nothing_is_handled_while_the_group_rebalances() -> None:
    events = [Event(1, 7)]
    assert await handled(*events, opened=False) == []
    assert not events[0].acknowledged


async def test_a_batch_that_a_rebalance_interrupts_is_not_acknowledged() -> None:
    event = Event(1, 7)
    assert await handled(event, interrupted=True) == []
    assert not event.acknowledged
