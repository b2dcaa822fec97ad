"""A topic that is deleted and created again counts its offsets from 0 again, and so do the blocks of the writer."""

from collections.abc import Sequence

from aiokafka import AIOKafkaProducer

from tests.eventually import eventually
from tests.integration.storage.grouped import Stage, ended, exactly, whole
from tests.topics import create_again

BLOCKS = 3


async def test_events_of_a_topic_that_was_created_again_are_stored_once(stage: Stage) -> None:
    writer = stage.writer()
    old, new = await accepted(stage), await accepted(stage)
    with ended(writer):
        await send_apart(stage, old)
        assert writer.stop() == 0
        await create_again(stage.settings, stage.topic)
        writer.restart()
        await eventually(lambda: writer.get("readyz")[0] == 200, 60)
        # `svc rebuild seen --from topics` sends the old ones again.
        await send_apart(stage, [*old, *new])
        assert await whole(stage) == exactly(stage.total)


async def accepted(stage: Stage) -> list[bytes]:
    """The decisions about new records of `events`."""
    async with AIOKafkaProducer(bootstrap_servers=stage.settings.kafka_bootstrap, acks="all") as producer:
        return [await stage.accept(producer, 0, 5, spread_days=0) for _ in range(BLOCKS)]


async def send_apart(stage: Stage, values: Sequence[bytes]) -> None:
    """Each in a separate block."""
    async with AIOKafkaProducer(bootstrap_servers=stage.settings.kafka_bootstrap, acks="all") as producer:
        for value in values:
            await stage.send(producer, 0, value)
            await whole(stage)
