"""The state of a partition from the end of `grouped`, read from a broker."""

from collections.abc import Sequence

from aiokafka import AIOKafkaProducer

from processors.grouper.grouped_tail import GroupedTail
from processors.grouper.replay_start import PublishedRecord, ReplayBoundary
from schemas.chunks import GroupedRecord, Grouping, encode_grouped
from schemas.environment import load
from schemas.settings import ProcessorsSettings

REACH = 256


def tail(bootstrap: str, prefix: str) -> GroupedTail:
    settings = load(ProcessorsSettings, {"SVC_KAFKA_BOOTSTRAP": bootstrap, "SVC_TOPIC_PREFIX": prefix})
    return GroupedTail(settings)


def record(offset: int, fingerprint: int) -> bytes:
    grouping = Grouping(fingerprint, "v1", "stack", ())
    return encode_grouped(GroupedRecord(2, offset, offset, [0, 3], [0, 0], [grouping], [7], {}, [0]))


async def write(
    bootstrap: str, topic: str, values: list[bytes], headers: Sequence[tuple[str, bytes]] = ()
) -> None:
    async with AIOKafkaProducer(bootstrap_servers=bootstrap, linger_ms=5) as producer:
        for sent in [
            await producer.send(topic, value, partition=2, headers=list(headers)) for value in values
        ]:
            await sent


async def test_nothing_is_reported_by_an_empty_topic(kafka_bootstrap: str, prefix: str) -> None:
    found = tail(kafka_bootstrap, prefix)
    assert await found.read(2) is None
    assert await found.read(2, (5, 9)) == ReplayBoundary(10, 9)


async def test_the_last_records_are_reported_as_they_were_first(kafka_bootstrap: str, prefix: str) -> None:
    topic = f"{prefix}grouped"
    first = [record(2 * n, 7) for n in range(1000)]
    again = [record(2 * n, 8) for n in range(700, 1000)]
    await write(kafka_bootstrap, topic, first + again)
    found = await tail(kafka_bootstrap, prefix).read(2)
    assert found is not None
    assert (found.since, found.last) == (1998 - REACH + 1, 1998)
    assert sorted(found.published) == list(range(1744, 2000, 2))
    assert {tuple(one.fingerprints.items()) for one in found.published.values()} == {((0, 7), (3, 7))}
    assert found.published[1998] == PublishedRecord(1998, {0: 7, 3: 7}, 1998)
    known = await tail(kafka_bootstrap, prefix).read(2, (1900, 1950))
    assert known is not None
    assert (known.since, known.last, min(known.published)) == (1900, 1998, 1900)
