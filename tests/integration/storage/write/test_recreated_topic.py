"""A topic that is deleted and created again counts its offsets from 0 again, and so do the blocks of the writer."""

from aiokafka import AIOKafkaProducer

from tests.eventually import eventually
from tests.integration.storage.grouped import Stage, ended, exactly, grouped, whole
from tests.topics import create_again

BLOCKS = 3


async def test_events_of_a_topic_that_was_created_again_are_stored(stage: Stage) -> None:
    writer = stage.writer()
    with ended(writer):
        await send_apart(stage, 0)
        assert writer.stop() == 0
        await create_again(stage.settings, stage.topic)
        writer.restart()
        await eventually(lambda: writer.get("readyz")[0] == 200, 60)
        await send_apart(stage, BLOCKS)
        assert await whole(stage) == exactly(stage.total)


async def send_apart(stage: Stage, first: int) -> None:
    """Records of source positions from `first` on, each in a separate block."""
    async with AIOKafkaProducer(bootstrap_servers=stage.settings.kafka_bootstrap, acks="all") as producer:
        for number in range(first, first + BLOCKS):
            await stage.send(producer, 0, grouped(0, number, [stage._event(spread_days=0) for _ in range(5)]))
            await whole(stage)
