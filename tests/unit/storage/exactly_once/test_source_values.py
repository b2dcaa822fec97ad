"""When a record of `events` counts as lost, on a consumer whose brokers say what a test lets them say."""

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import TopicPartition

from broker.errors import KafkaError, OffsetOutOfRangeError
from storage.exactly_once.source_values import SourceValues
from tests.integration.storage.write.test_source_values import decisions, values

EVENTS = TopicPartition("events", 0)


class Brokers:
    """The consumer; the brokers know the records from `begin` to before `end`, and deliver those before `delivered`."""

    def __init__(self) -> None:
        self.begin, self.end, self.delivered = 0, 100, 100
        self.leader: int | None = 1
        self.now = 1000.0
        self.at = 0
        self.is_paused = True
        self.is_fetched = False
        self.ends = 0
        self._client = SimpleNamespace(
            force_metadata_update=lambda: None,
            cluster=SimpleNamespace(leader_for_partition=lambda _: self.leader),
        )

    async def position(self, _: TopicPartition) -> int:
        return self.at

    def seek(self, _: TopicPartition, offset: int) -> None:
        self.at, self.is_fetched = offset, False

    def resume(self, _: TopicPartition) -> None:
        self.is_paused = False

    async def getmany(self, tp: TopicPartition, *, timeout_ms: int, max_records: int) -> dict[Any, Any]:
        """After a jump nothing is fetched ahead: who doesn't wait gets nothing."""
        assert not self.is_paused
        is_fetched, self.is_fetched = self.is_fetched or timeout_ms > 0, True
        if not is_fetched:
            return {}
        if not self.begin <= self.at <= self.end:
            raise OffsetOutOfRangeError({tp: self.at})
        found = range(self.at, min(self.at + max_records, self.delivered))
        self.at += len(found)
        self.now += 0 if found else timeout_ms / 1000
        return {tp: [SimpleNamespace(offset=n, value=b"%d" % n) for n in found]} if found else {}

    async def beginning_offsets(self, tps: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return dict.fromkeys(tps, self.begin)

    async def end_offsets(self, tps: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        self.ends += 1
        return dict.fromkeys(tps, self.end)


@pytest.fixture
def brokers() -> Brokers:
    return Brokers()


@pytest.fixture
async def sources(brokers: Brokers) -> SourceValues:
    found = SourceValues(brokers, "events")
    found._clock = lambda: brokers.now
    return found


async def ask(
    sources: SourceValues, brokers: Brokers, seconds: float, *offsets: int, every: float = 1
) -> Any:
    """The answer when it comes, asked again and again; None if it doesn't come within some seconds."""
    until = brokers.now + seconds
    while (answer := await sources.delivered(decisions(*offsets))) is None and brokers.now < until:
        brokers.now += every
    return answer


@pytest.mark.parametrize("end", [0, 50, 60], ids=["recreated", "earlier end", "just before"])
async def test_a_former_leader_does_not_make_a_record_lost(
    sources: SourceValues, brokers: Brokers, end: int
) -> None:
    brokers.end = brokers.delivered = end
    assert await ask(sources, brokers, 25, 60, 61) is None
    assert brokers.ends > 20
    brokers.end = brokers.delivered = 100
    assert await ask(sources, brokers, 1, 60, 61) == values(60, 61)


async def test_what_every_broker_lacks_for_long_is_lost(sources: SourceValues, brokers: Brokers) -> None:
    brokers.end = brokers.delivered = 10
    assert await ask(sources, brokers, 40, 9, 60, 61) == [*values(9), None, None]
    # The recreated topic's own records are read, and others need as many answers.
    brokers.end = brokers.delivered = 11
    assert await ask(sources, brokers, 2, 10) == values(10)
    assert await ask(sources, brokers, 25, 62) is None


async def test_few_answers_make_no_record_lost_however_long_they_take(
    sources: SourceValues, brokers: Brokers
) -> None:
    brokers.end = brokers.delivered = 10
    assert await ask(sources, brokers, 90, 60, every=45) is None
    assert await ask(sources, brokers, 3600, 60, every=45) == [None]
    assert brokers.ends >= 20


async def test_what_expires_while_it_is_asked_for_is_lost_at_once(
    sources: SourceValues, brokers: Brokers
) -> None:
    brokers.begin = 20
    assert await ask(sources, brokers, 0, 3, 19, 20) == [None, None, *values(20)]
    brokers.begin = 90
    assert await ask(sources, brokers, 0, 21, 50) == [None, None]


async def test_a_partition_without_a_leader_is_never_lost_and_keeps_what_it_delivered(
    sources: SourceValues, brokers: Brokers
) -> None:
    brokers.delivered, brokers.leader = 62, None
    assert await ask(sources, brokers, 200, 60, 61, 62) is None
    brokers.delivered, brokers.leader, brokers.begin = 100, 1, 62
    assert await ask(sources, brokers, 1, 60, 61, 62) == values(60, 61, 62)


async def test_a_record_that_is_there_and_not_delivered_is_an_error(
    sources: SourceValues, brokers: Brokers
) -> None:
    brokers.delivered = 60
    with pytest.raises(KafkaError, match="events/0 from 60 on are not delivered"):
        await ask(sources, brokers, 60, 60)
