"""The grouper over logs in memory: starts that recover the state of earlier ones."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Iterable
from contextlib import suppress

import pytest
from aiokafka.errors import KafkaTimeoutError
from msgspec.structs import replace

from broker.batch_producer import WrittenBatch
from broker.message import Message
from processors.grouper.dedup_log import DROP_REASONS
from processors.grouper.event_outline import EventOutline
from processors.grouper.fingerprinter import EventGrouping, Fingerprinter
from processors.grouper.rule_budget import RuleBudget
from processors.partition_stage import TooManyBad
from schemas.chunks import ChunkEvent
from schemas.issues import decode_outcomes
from schemas.projects import GroupingRule
from tests.unit.processors.aggregator.world import Crash, MemoryForwarder
from tests.unit.processors.grouper import grouper_world
from tests.unit.processors.grouper.grouper_world import GrouperWorld, no_steps, registry
from tests.unit.processors.made import START, carried

BAD = b"\xc1"


async def test_bad_records_are_not_dead_lettered_a_few_more_at_each_start() -> None:
    world = GrouperWorld()
    world.send(*[BAD] * 1000)
    for _ in range(20):
        await world.start()
        with pytest.raises(TooManyBad, match="SVC_PROCESSORS_BAD_LIMIT=0"):
            await world.settle()
    assert world.dead_letter_messages() == [*range(96)]


async def test_a_batch_that_was_not_published_is_replayed_before_the_limit_stops_anything() -> None:
    world = GrouperWorld()
    world.send(*[[carried(n)] for n in range(8)], *[BAD] * 300)
    await world.start()
    await world.work(4)
    # The entry is written, but none of its outputs.
    world.memory.crash_in = 2
    with pytest.raises(Crash):
        await world.work(4)
    for _ in range(3):
        await world.start()
        with pytest.raises(TooManyBad):
            await world.settle(40)
    assert sum(world.stored().values()) == sum(world.counted().values()) == 8


class OverLimit(Fingerprinter):
    """Drops events of one kind for a second reason."""

    def group(
        self, chunk_event: ChunkEvent, budget: RuleBudget | None = None
    ) -> tuple[EventOutline, EventGrouping]:
        """As the grouper groups, but for the events over the limit."""
        event, found = super().group(chunk_event, budget)
        return event, replace(found, fingerprint=1) if b"Kind2Error" in bytes(event.error) else found


def dropped(world: GrouperWorld) -> Counter[str]:
    """Events that were not published by reason; a row of the same source and reason is a repeat."""
    rows = {
        (one.project_id, one.minute, one.sdk, one.outcome, one.reason, one.source, one.sequence): one
        for message in world.written("outcomes")
        for one in decode_outcomes(message.value or b"")
    }
    return sum((Counter({r.reason: r.count}) for r in rows.values() if r.reason), Counter[str]())


@pytest.mark.parametrize("crash_in", range(2, 9))
async def test_dropped_events_are_counted_once_and_for_their_reason_after_a_crash_and_a_change_of_rules(
    crash_in: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(DROP_REASONS, 1, "overLimit")
    world = GrouperWorld()
    noise = GroupingRule(name="noise", match="type:Kind1Error", discard=True)
    world.projects = registry([noise])
    world.send([carried(n, kind=n % 3) for n in range(6)], [carried(6, kind=2), carried(7, kind=0)])
    with monkeypatch.context() as patched:
        patched.setattr(grouper_world, "Fingerprinter", OverLimit)
        await world.start()
        world.memory.crash_in = crash_in
        with suppress(Crash):
            await world.settle()
    # Every reason would be another one now.
    world.projects = registry(
        [GroupingRule(name="other", match="type:[Kind0Error, Kind2Error]", discard=True)]
    )
    await world.start()
    await world.settle()
    assert dropped(world) == {"discarded": 2, "overLimit": 3}
    assert sum(world.stored().values()) == sum(world.counted().values()) == 3


async def test_nothing_is_counted_whose_events_the_broker_has_not_acknowledged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begin = MemoryForwarder.begin

    async def unacknowledged(
        self: MemoryForwarder, topic: str, partition: int, messages: Iterable[Message]
    ) -> list[Awaitable[WrittenBatch]]:
        if topic != "grouped":
            return await begin(self, topic, partition, messages)
        late: asyncio.Future[WrittenBatch] = asyncio.get_running_loop().create_future()
        late.set_exception(KafkaTimeoutError())
        return [late]

    world = GrouperWorld()
    world.send([carried(1)])
    await world.start()
    with monkeypatch.context() as patched:
        patched.setattr(MemoryForwarder, "begin", unacknowledged)
        with pytest.raises(KafkaTimeoutError):
            await world.settle()
    assert not world.written("issue-deltas")
    await world.start()
    await world.settle()
    assert sum(world.stored().values()) == sum(world.counted().values()) == 1


@pytest.mark.parametrize("crash_in", range(1, 9))
async def test_before_a_record_is_in_grouped_its_other_outputs_are_in_their_topics(crash_in: int) -> None:
    world = GrouperWorld(each=True)
    world.send(BAD, [carried(1)])
    await world.start()
    world.memory.crash_in = crash_in
    with suppress(Crash):
        await world.settle()
    grouped = len(world.written("grouped"))
    assert len(world.dead_letter_messages()) >= grouped
    assert len(world.written("grouped-events")) >= grouped
    assert len(world.written("outcomes")) >= grouped


async def test_once_the_cause_is_repaired_the_worker_goes_on_where_it_stopped() -> None:
    world = GrouperWorld()
    world.send(*[[carried(n)] for n in range(300)])
    good = list(world.log)
    world.log = [one._replace(value=BAD) if one.offset >= 20 else one for one in good]
    await world.start()
    with pytest.raises(TooManyBad):
        await world.settle()
    world.log = good
    await world.start()
    await world.settle()
    again = len(world.dead_letter_messages())
    assert sum(world.stored().values()) == 300 - again
    assert world.dead_letter_messages() == list(range(20, 20 + again))


async def test_bad_records_of_old_are_forgotten_by_as_many_good_ones() -> None:
    world = GrouperWorld()
    world.send(*[BAD] * 90, *[[carried(n)] for n in range(200)], *[BAD] * 90)
    for _ in range(3):
        await world.start()
        await world.work(40)
    await world.start()
    await world.settle()
    assert world.outcomes()["accepted"] == 200


async def test_a_start_with_many_bad_records_behind_it_takes_good_ones() -> None:
    world = GrouperWorld()
    world.send(*[BAD] * 90)
    await world.start()
    await world.settle()
    world.send(*[[carried(n)] for n in range(5)], ms=START + 1)
    await world.start()
    await world.settle()
    assert sum(world.stored().values()) == 5


async def test_a_single_event_record_has_the_same_source_position_when_it_is_repeated() -> None:
    world = GrouperWorld(each=True)
    world.send([carried(1), carried(2, kind=1)], [carried(1)], [carried(3)])
    await world.start()
    await world.settle()
    await world.start()
    await world.settle()
    records = world.written("grouped-events")
    places = [dict(record.headers)["source"] for record in records]
    assert places == [b"1/0", b"1/0", b"1/2"] * 2
    assert [record.key for record in records[:3]] == [record.key for record in records[3:]]


async def test_a_record_that_was_no_chunk_to_an_older_version_stays_dead_lettered() -> None:
    world = GrouperWorld()
    world.send([carried(1)], BAD, [carried(2)])
    await world.start()
    await world.settle()
    world.log[1] = world.log[0]._replace(offset=1)
    await world.start()
    await world.settle()
    assert world.dead_letter_messages() == [1, 1]
    assert set(world.stored().values()) == {1}
    assert world.outcomes() == {"accepted": 2}


async def test_skipped_rules_are_counted_in_separate_records(monkeypatch: pytest.MonkeyPatch) -> None:
    no_steps(monkeypatch)
    world = GrouperWorld()
    world.rule()
    world.send([carried(1), carried(2)], [carried(1)])
    await world.start()
    await world.settle()
    assert world.outcomes() == {"accepted": 3, "duplicate": 1, "ruleSkipped": 2}
    kinds = [
        {one.outcome for one in decode_outcomes(message.value or b"")}
        for message in world.written("outcomes")
    ]
    # A writer that doesn't know them sets aside no count of events.
    assert kinds == [{"accepted", "duplicate"}, {"ruleSkipped"}]
    samples = {s.name: s.value for m in world.metrics.rules_skipped.collect() for s in m.samples}
    assert samples["svc_processors_rules_skipped_total"] == 2
