"""A table's topic that `svc rebuild` empties, on a real broker."""

from broker.client import name_of, writing
from broker.topics import empty_topic, ensure_topics, specs_of, topic_settings
from schemas.settings import KafkaSettings
from schemas.topics import Topic
from tests.eventually import eventually


async def test_an_emptied_topic_keeps_its_settings(kafka_bootstrap: str, prefix: str) -> None:
    settings = KafkaSettings(kafka_bootstrap=kafka_bootstrap, topic_prefix=prefix, topic_partitions=1)
    await ensure_topics(settings)
    name = name_of(settings, Topic.SEEN)
    async with writing(settings) as producer:
        await producer.send_and_wait(name, b"1", key=b"k", partition=0)
    assert await empty_topic(settings, name) == 1
    assert await empty_topic(settings, name) == 0
    [spec] = [spec for spec in specs_of(settings) if spec.name == name]

    async def are_kept() -> bool:
        return (await topic_settings(settings, [spec]))[name] == spec.configs

    # The broker learns of a change from its controller.
    await eventually(are_kept, 30)
