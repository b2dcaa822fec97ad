"""Brings the topics into being, and says where one that exists differs from what is asked (contract, section 1)."""

from typing import Any, Final

import msgspec
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError, TopicAlreadyExistsError, for_code
from msgspec import Struct

from schemas.kafka import calm, client_options
from schemas.settings import KafkaSettings
from schemas.topics import TopicSpec, topic_specs

_TOPIC: Final = 3


class TopicsRefused(Exception):
    """The broker refused to create topics; the text names each with the reason."""


class TopicsReport(Struct, frozen=True):
    """Names of the topics that were created, and a sentence for each difference of one that existed."""

    created: list[str]
    differences: list[str]


def specs_of(settings: KafkaSettings) -> list[TopicSpec]:
    """The topics that these settings ask for."""
    return topic_specs(
        settings.topic_prefix,
        settings.topic_overrides,
        settings.topic_partitions,
        settings.topic_replication,
    )


async def ensure_topics(settings: KafkaSettings) -> TopicsReport:
    """Create what is missing; an existing topic is left as it is. Raises KafkaError and TopicsRefused."""
    admin = AIOKafkaAdminClient(**client_options(settings))
    calm(admin._client)
    await admin.start()
    try:
        specs = specs_of(settings)
        created = await _create(admin, specs)
        existing = [spec for spec in specs if spec.name not in created]
        return TopicsReport(created=created, differences=await _differences(admin, existing))
    finally:
        await admin.close()


async def _create(admin: AIOKafkaAdminClient, specs: list[TopicSpec]) -> list[str]:
    present = set(await admin.list_topics())
    missing = [spec for spec in specs if spec.name not in present]
    if not missing:
        return []
    answer = await admin.create_topics(
        [NewTopic(s.name, s.partitions, s.replication, topic_configs=s.configs) for s in missing]
    )
    created, refused = [], []
    for name, code, *message in answer.topic_errors:
        error: type[KafkaError] = for_code(code)
        if code == 0:
            created.append(name)
        elif error is not TopicAlreadyExistsError:
            refused.append(f"{name}: {error.__name__} {' '.join(filter(None, message))}".rstrip())
    if refused:
        raise TopicsRefused("; ".join(refused))
    return created


async def _differences(admin: AIOKafkaAdminClient, specs: list[TopicSpec]) -> list[str]:
    if not specs:
        return []
    partitions = {
        topic["topic"]: len(topic["partitions"])
        for topic in await admin.describe_topics([spec.name for spec in specs])
    }
    configs = await _configs(admin, specs)
    found = []
    for spec in specs:
        if partitions.get(spec.name, spec.partitions) != spec.partitions:
            found.append(f"{spec.name} has {partitions[spec.name]} partitions, asked are {spec.partitions}")
        for name, wanted in spec.configs.items():
            have = configs.get(spec.name, {}).get(name, wanted)
            if have != wanted:
                found.append(f"{spec.name} has {name}={have}, asked is {wanted}")
    return found


async def _configs(admin: AIOKafkaAdminClient, specs: list[TopicSpec]) -> dict[str, dict[str, Any]]:
    wanted = [
        ConfigResource(ConfigResourceType.TOPIC, spec.name, configs=dict.fromkeys(spec.configs))
        for spec in specs
    ]
    found: dict[str, dict[str, Any]] = {}
    for answer in await admin.describe_configs(wanted):
        for _code, _message, kind, name, entries in answer.resources:
            if kind == _TOPIC:
                found[name] = {entry[0]: entry[1] for entry in entries}
    return found


def as_builtins(specs: list[TopicSpec]) -> list[dict[str, Any]]:
    """Specifications as plain values, to be printed."""
    return [msgspec.to_builtins(spec) for spec in specs]
