"""A table's topic that `svc rebuild` empties, on a real broker."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import PolicyViolationError

from broker import topics
from broker.client import name_of, open_producer
from broker.topics import empty_topic, ensure_topics, specs_of, topic_settings
from schemas.settings import KafkaSettings
from schemas.topics import Topic
from tests.eventually import eventually


async def test_an_emptied_topic_keeps_its_settings(kafka_bootstrap: str, prefix: str) -> None:
    settings = KafkaSettings(kafka_bootstrap=kafka_bootstrap, topic_prefix=prefix, topic_partitions=1)
    await ensure_topics(settings)
    name = name_of(settings, Topic.SEEN)
    async with open_producer(settings) as producer:
        await producer.send_and_wait(name, b"1", key=b"k", partition=0)
    assert await empty_topic(settings, name) == 1
    assert await empty_topic(settings, name) == 0
    [spec] = [spec for spec in specs_of(settings) if spec.name == name]

    async def are_kept() -> bool:
        return (await topic_settings(settings, [spec]))[name] == spec.configs

    # The broker learns of a change from its controller.
    await eventually(are_kept, 30)


async def test_a_topic_is_emptied_once_its_leader_has_taken_the_changed_policy(
    kafka_bootstrap: str, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = KafkaSettings(kafka_bootstrap=kafka_bootstrap, topic_prefix=prefix, topic_partitions=1)
    name = name_of(settings, Topic.SEEN)
    async with open_producer(settings) as producer:
        await producer.send_and_wait(name, b"1", key=b"k", partition=0)
    replace, delete = topics._replace_settings, AIOKafkaAdminClient.delete_records
    changes, refused = list[Callable[[], Awaitable[None]]](), 0

    async def later(admin: Any, topic: str, changed: dict[str, str]) -> None:
        """Allow the deletion only after one was tried."""
        if "delete" in changed["cleanup.policy"]:
            changes.append(lambda: replace(admin, topic, changed))
        else:
            await replace(admin, topic, changed)

    async def early(admin: AIOKafkaAdminClient, records: Mapping[Any, Any]) -> Any:
        nonlocal refused
        try:
            return await delete(admin, records)
        except PolicyViolationError:
            refused += 1
            while changes:
                await changes.pop()()
            raise

    monkeypatch.setattr(topics, "_replace_settings", later)
    monkeypatch.setattr(AIOKafkaAdminClient, "delete_records", early)
    assert await empty_topic(settings, name) == 1
    assert refused
    assert await empty_topic(settings, name) == 0
