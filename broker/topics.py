"""Creates the topics, and compares existing ones with their specification (contract, section 1)."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

from aiokafka.admin import NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import (
    KafkaError,
    LeaderNotAvailableError,
    PolicyViolationError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
    for_code,
)
from msgspec import Struct

from broker.client import name_of, open_admin, open_consumer
from broker.errors import TopicMissing, TopicsRefused
from broker.types import Admin, TopicPartition
from schemas.settings import KafkaSettings
from schemas.topics import Topic, TopicSpec, topic_specs, unequal_partitions

_TOPIC: Final = 2
_TOPIC_SOURCE: Final = 1
_UNLIMITED: Final = "-1"
_EXACT: Final = frozenset({"cleanup.policy", "message.timestamp.type"})
_AT_LEAST: Final = frozenset(
    {"max.message.bytes", "min.insync.replicas", "retention.ms", "delete.retention.ms"}
)
"""Settings that may exceed the specification. Settings in neither set only affect disk usage and time."""

_VISIBLE_SECONDS: Final = 10.0
_TAKEN_SECONDS: Final = 60.0
_POLL_SECONDS: Final = 0.05


class TopicDifference(Struct, frozen=True):
    """How a topic differs from its specification.

    `setting` is the required `name=value`. It is empty if the topic has more than that, or if the difference
    isn't about a setting. A difference is `harmless` if no guarantee depends on it.
    """

    topic: str
    message: str
    setting: str = ""
    harmless: bool = False


class TopicsReport(Struct, frozen=True):
    """Names of created topics, and differences of existing ones.

    It has a message for each part that can't be compared.
    """

    created: list[str]
    differences: list[TopicDifference]
    unknown: list[str]


def specs_of(settings: KafkaSettings, *, grouped_events: bool = True) -> list[TopicSpec]:
    """The topics according to the settings; `grouped-events` only if it is written."""
    return list(_specs(settings, grouped_events).values())


def _specs(settings: KafkaSettings, grouped_events: bool) -> dict[Topic, TopicSpec]:
    specs = topic_specs(
        settings.topic_prefix,
        settings.topic_overrides,
        settings.topic_partitions,
        settings.topic_replication,
    )
    found = dict(zip(Topic, specs, strict=True))
    if not grouped_events:
        del found[Topic.GROUPED_EVENTS]
    return found


async def ensure_topics(settings: KafkaSettings, *, grouped_events: bool = True) -> TopicsReport:
    """Create missing topics; existing ones are not changed. Raises KafkaError and TopicsRefused."""
    async with open_admin(settings) as admin:
        wanted = _specs(settings, grouped_events)
        specs = list(wanted.values())
        created = await _create(admin, specs)
        existing = [spec for spec in specs if spec.name not in created]
        described = await _describe(admin, existing) if existing else {}
    counts = {
        topic: partitions
        for topic, spec in wanted.items()
        if (partitions := described.get(spec.name, spec).partitions)
    }
    unequal = unequal_partitions(counts, partial(name_of, settings))
    return TopicsReport(
        created=created,
        differences=[
            *(difference for spec in existing for difference in differences(spec, described[spec.name])),
            *([TopicDifference("", f"partitions: {unequal}; the processors don't start")] if unequal else []),
        ],
        unknown=[message for spec in existing for message in unknown(spec, described[spec.name])],
    )


async def _create(admin: Admin, specs: list[TopicSpec]) -> list[str]:
    present = set(await admin.list_topics())
    missing = [spec for spec in specs if spec.name not in present]
    if not missing:
        return []
    response = await admin.create_topics(
        [NewTopic(s.name, s.partitions, s.replication, topic_configs=s.configs) for s in missing]
    )
    created, refused = [], []
    for name, code, *message in response.topic_errors:
        error: type[KafkaError] = for_code(code)
        if code == 0:
            created.append(name)
        elif error is not TopicAlreadyExistsError:
            refused.append(f"{name}: {error.__name__} {' '.join(filter(None, message))}".rstrip())
    if refused:
        raise TopicsRefused("; ".join(refused))
    await visible(admin, [spec.name for spec in missing])
    return created


async def visible(admin: Admin, names: Sequence[str]) -> None:
    """Return once the broker knows new topics and their leaders, shortly after their creation.

    Returns after 10 s at the latest.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(_VISIBLE_SECONDS):
            while True:
                topics = await admin.describe_topics(names)
                if not any(map(_is_unknown, topics)):
                    return
                await asyncio.sleep(_POLL_SECONDS)


def _is_unknown(topic: dict[str, Any]) -> bool:
    """Whether a topic, or the leader of one of its partitions, isn't known yet.

    A refused description is no reason to wait.
    """
    codes = {topic["error_code"], *(partition["error_code"] for partition in topic["partitions"])}
    return bool(codes & {UnknownTopicOrPartitionError.errno, LeaderNotAvailableError.errno})


class FoundTopic(Struct, frozen=True):
    """A topic as the broker describes it; None for each part that it refuses to describe."""

    partitions: int | None
    replicas: int | None
    configs: dict[str, str] | None


def differences(spec: TopicSpec, topic: FoundTopic) -> Iterator[TopicDifference]:
    """How a topic differs from its specification, as far as the broker describes it."""
    if topic.partitions not in {None, spec.partitions}:
        message = f"{spec.name} has {topic.partitions} partitions, expected are {spec.partitions}"
        yield TopicDifference(spec.name, message)
    if topic.replicas is not None and topic.replicas < spec.replication:
        yield TopicDifference(
            spec.name, f"{spec.name} has {topic.replicas} replicas, expected are {spec.replication}"
        )
    for name, wanted in spec.configs.items():
        have = (topic.configs or {}).get(name, wanted)
        if have != wanted:
            message = f"{spec.name} has {name}={have}, expected is {wanted}"
            harmless = _harmless(name, have, wanted, topic.replicas)
            setting = "" if harmless and name in _AT_LEAST else f"{name}={wanted}"
            yield TopicDifference(spec.name, message, setting, harmless)


def _harmless(name: str, have: str, wanted: str, replicas: int | None) -> bool:
    if name == "min.insync.replicas" and replicas is not None and int(have) > replicas:
        # Writes would fail.
        return False
    if name in _AT_LEAST:
        return have == _UNLIMITED or int(have) >= int(wanted)
    return name not in _EXACT


def unknown(spec: TopicSpec, topic: FoundTopic) -> Iterator[str]:
    """The parts that can't be compared, each with the missing right."""
    if topic.partitions is None:
        yield f"the partitions of {spec.name} (Describe is refused)"
    if topic.configs is None:
        yield f"the settings of {spec.name} (DescribeConfigs is refused)"


async def _describe(admin: Admin, specs: list[TopicSpec]) -> dict[str, FoundTopic]:
    described = {
        topic["topic"]: topic["partitions"]
        for topic in await admin.describe_topics([spec.name for spec in specs])
        if not topic["error_code"]
    }
    configs = await _configs(admin, specs)
    return {
        spec.name: FoundTopic(
            partitions=len(partitions) if (partitions := described.get(spec.name)) else None,
            replicas=min(len(p["replicas"]) for p in partitions) if partitions else None,
            configs=configs.get(spec.name),
        )
        for spec in specs
    }


async def topic_settings(settings: KafkaSettings, specs: Sequence[TopicSpec]) -> dict[str, dict[str, str]]:
    """The settings of existing topics by name, except refused ones. Raises KafkaError."""
    async with open_admin(settings) as admin:
        return await _configs(admin, specs) if specs else {}


async def _configs(admin: Admin, specs: Sequence[TopicSpec]) -> dict[str, dict[str, str]]:
    """The settings of topics; the broker reports an error for those that it refuses."""
    resources = [
        ConfigResource(ConfigResourceType.TOPIC, spec.name, configs=dict.fromkeys(spec.configs))
        for spec in specs
    ]
    return {
        name: {entry[0]: entry[1] for entry in entries}
        for response in await admin.describe_configs(resources)
        for code, _message, kind, name, entries in response.resources
        if kind == _TOPIC and not code
    }


async def empty_topic(settings: KafkaSettings, name: str) -> int:
    """Delete all records of a compacted topic; returns an upper bound of their number.

    Raises KafkaError and TopicMissing.
    """
    async with open_admin(settings) as admin, open_consumer(settings) as consumer:
        described = await admin.describe_topics([name])
        partitions = [TopicPartition(name, p["partition"]) for p in described[0]["partitions"]]
        if not partitions:
            raise TopicMissing(f"there is no topic {name}: run `svc migrate`")
        begins, ends = await consumer.beginning_offsets(partitions), await consumer.end_offsets(partitions)
        own = await _own_settings(admin, name)
        # Brokers refuse to delete records of a topic that is only compacted.
        await _replace_settings(admin, name, own | {"cleanup.policy": "compact,delete"})
        try:
            await _delete_before(admin, ends)
        finally:
            await _replace_settings(admin, name, own | {"cleanup.policy": "compact"})
        return sum(ends[p] - begins[p] for p in partitions)


async def _delete_before(admin: Admin, ends: Mapping[TopicPartition, int]) -> None:
    """Delete records, once each partition's leader has taken the policy that allows it. Raises KafkaError."""
    end = asyncio.get_running_loop().time() + _TAKEN_SECONDS
    while True:
        try:
            await admin.delete_records(
                {p: RecordsToDelete(before_offset=offset) for p, offset in ends.items()}
            )
        except PolicyViolationError:
            # A leader learns of a changed policy from the controller.
            if asyncio.get_running_loop().time() > end:
                raise
            await asyncio.sleep(_POLL_SECONDS)
        else:
            return


async def _own_settings(admin: Admin, topic: str) -> dict[str, str]:
    """The settings that override the brokers' defaults for a topic. Raises KafkaError."""
    [response] = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
    [(code, _message, _kind, _name, entries)] = response.resources
    if code:
        raise for_code(code)(topic)
    return {name: value for name, value, _read_only, source, *_ in entries if source == _TOPIC_SOURCE}


async def _replace_settings(admin: Admin, topic: str, settings: dict[str, str]) -> None:
    """Give a topic these settings. Raises KafkaError.

    The broker removes the settings that the request doesn't name.
    """
    [response] = await admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, settings)])
    [(code, *_)] = response.resources
    if code:
        raise for_code(code)(topic)
