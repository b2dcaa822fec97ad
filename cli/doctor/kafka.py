"""The checks of `svc doctor` on Kafka: connection, topics, settings, partitions, replicas, rights."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType

from broker.client import name_of
from broker.cluster import ClusterView, describe_cluster
from broker.consumer_lag import nobody_reads, without_reader
from broker.diagnosis import addresses, why_refused
from broker.errors import KafkaError
from broker.rights import Process, RequiredRights, lacking
from broker.topics import FoundTopic, TopicDifference, setting_differences, topic_settings
from cli.doctor.checks import Finding
from schemas.settings import KafkaSettings
from schemas.topics import Topic, TopicSpec, topic_specs, unequal_partitions

SECONDS = 15.0
NAME = "kafka"
NO_PROCESSES: Mapping[Process, RequiredRights] = MappingProxyType({})
UNWRITTEN = "see the readyz of the writers; if they don't take the partitions within a minute, restart them"


def check_kafka(
    settings: KafkaSettings, needed: Mapping[Process, RequiredRights] = NO_PROCESSES
) -> list[Finding]:
    """Check the connection, the topics and the rights of the processes; stops after failed connections."""
    if not settings.kafka_bootstrap:
        fix = "start `svc up` on this data directory, or set SVC_KAFKA_BOOTSTRAP"
        return [Finding(NAME, False, "no address is known", fix)]
    failures: list[Finding] = []
    for address in addresses(settings):
        reason = why_refused(settings, address)
        if reason is None:
            return [*failures, *_check_cluster(settings, address, needed)]
        failures.append(Finding(NAME, False, reason.message, reason.fix))
    return failures


def _check_cluster(
    settings: KafkaSettings, address: str, needed: Mapping[Process, RequiredRights]
) -> list[Finding]:
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    every = topic_specs(settings.topic_prefix, settings.topic_overrides, 1, settings.topic_replication)
    topics = {topic for need in needed.values() for topic in need.topics}
    specs = [spec for spec, topic in zip(every, Topic, strict=True) if topic in topics or not needed]
    groups = [group for need in needed.values() for group in (*need.groups, *need.describes_groups)]
    writers = needed["writer"].groups[0] if "writer" in needed else ""
    try:
        view, configs = asyncio.run(_look(settings, specs, groups))
        unwritten = asyncio.run(_unwritten(settings, writers)) if writers else ""
    except (KafkaError, OSError) as error:
        detail = f"{address} accepts the connection but does not answer ({error or type(error).__name__})"
        fix = "see the broker's log; is every advertised address reachable?"
        return [Finding(NAME, False, detail, fix)]
    allowed = view.allowed(spec.name for spec in specs)
    return [
        Finding(NAME, True, f"{address} answers"),
        topics_finding(specs, view),
        settings_finding(specs, view, configs, address),
        partitions_finding(settings, view),
        replication_finding(specs, view, settings.topic_replication),
        *(
            rights_finding(process, lacking(need, settings, allowed, view.groups))
            for process, need in needed.items()
        ),
        *([Finding("writers", False, unwritten, UNWRITTEN)] if unwritten else []),
    ]


async def _look(
    settings: KafkaSettings, specs: Sequence[TopicSpec], groups: Sequence[str]
) -> tuple[ClusterView, dict[str, dict[str, str]]]:
    async with asyncio.timeout(SECONDS):
        view = await describe_cluster(settings, [spec.name for spec in specs], groups)
        return view, await topic_settings(settings, _seen(specs, view))


async def _unwritten(settings: KafkaSettings, group: str) -> str:
    """Partitions that the running writers leave out; empty where none runs, or the rights to see it are missing."""
    with suppress(KafkaError, OSError, TimeoutError):
        async with asyncio.timeout(SECONDS):
            left = await without_reader(settings, group, Topic.GROUPED)
            return nobody_reads(name_of(settings, Topic.GROUPED), left)
    return ""


def _seen(specs: Sequence[TopicSpec], view: ClusterView) -> list[TopicSpec]:
    return [spec for spec in specs if spec.name in view.topics]


def topics_finding(specs: Sequence[TopicSpec], view: ClusterView) -> Finding:
    """Check that the topics exist; one that may not be described is not fine."""
    missing = [spec.name for spec in specs if spec.name in view.missing]
    if missing:
        return Finding("topics", False, f"missing: {', '.join(missing)}", "run `svc migrate`")
    hidden = [spec.name for spec in specs if spec.name not in view.topics]
    if hidden:
        detail = f"not checked, Describe is not allowed: {', '.join(hidden)}"
        return Finding(
            "topics", False, detail, "grant the rights below, or use --for if these credentials need fewer"
        )
    return Finding("topics", True, "all exist")


def settings_finding(
    specs: Sequence[TopicSpec], view: ClusterView, configs: Mapping[str, dict[str, str]], address: str
) -> Finding:
    """Check the settings of existing topics; unreadable ones are mentioned and no error."""
    seen = _seen(specs, view)
    differences = [
        difference
        for spec in seen
        for difference in setting_differences(spec, _found_topic(spec.name, view, configs))
    ]
    wrong = [difference for difference in differences if not difference.harmless]
    details = [difference.message for difference in wrong or differences]
    if hidden := [spec.name for spec in seen if spec.name not in configs]:
        details.append(f"not compared, DescribeConfigs is not allowed: {', '.join(hidden)}")
    if wrong:
        return Finding("topic settings", False, "; ".join(details), _alter_commands(wrong, address))
    if differences:
        details[0] = f"not as specified, but harmless: {details[0]}"
    return Finding(
        "topic settings", True, "; ".join(details) or "as specified", _alter_commands(differences, address)
    )


def _found_topic(name: str, view: ClusterView, configs: Mapping[str, dict[str, str]]) -> FoundTopic:
    topic = view.topics[name]
    return FoundTopic(topic.partitions, min(topic.replicas), configs.get(name))


def _alter_commands(differences: Sequence[TopicDifference], address: str) -> str:
    settings: dict[str, list[str]] = {}
    for difference in differences:
        if difference.setting:
            settings.setdefault(difference.topic, []).append(difference.setting)
    return "; ".join(
        f"kafka-configs.sh --bootstrap-server {address} --alter --entity-type topics --entity-name {topic} "
        f"--add-config {','.join(configs)}"
        for topic, configs in settings.items()
    )


def partitions_finding(settings: KafkaSettings, view: ClusterView) -> Finding:
    """Check that the topics that are written by the source's partition have it."""
    specs = topic_specs(settings.topic_prefix, settings.topic_overrides, 1, 1)
    names = {topic: spec.name for spec, topic in zip(specs, Topic, strict=True)}
    counts = {topic: view.topics[name].partitions for topic, name in names.items() if name in view.topics}
    if unequal := unequal_partitions(counts, names.__getitem__):
        fix = "add partitions before the first event (kafka-topics.sh --alter); otherwise the processors don't start"
        return Finding("partitions", False, unequal, fix)
    return Finding("partitions", True, "every topic has the partitions of its source")


def replication_finding(specs: Sequence[TopicSpec], view: ClusterView, required: int) -> Finding:
    """Check that the cluster can have the required replicas, that each topic has them, and that all are in sync."""
    if required > view.brokers:
        detail = f"{required} replicas are required, but the cluster has {view.brokers} brokers"
        return Finding("replication", False, detail, "add brokers, or lower SVC_TOPIC_REPLICATION")
    seen = {spec.name: view.topics[spec.name] for spec in specs if spec.name in view.topics}
    few = [f"{name} has {min(t.replicas)}" for name, t in seen.items() if min(t.replicas) < required]
    if few:
        detail = f"{required} replicas are required; {', '.join(few)}"
        return Finding(
            "replication", False, detail, "reassign the partitions, or lower SVC_TOPIC_REPLICATION"
        )
    behind = [
        name for name, t in seen.items() if any(s < r for s, r in zip(t.in_sync, t.replicas, strict=True))
    ]
    if behind:
        detail = f"replicas are out of sync: {', '.join(behind)}"
        return Finding("replication", False, detail, "see the brokers' logs")
    return Finding("replication", True, f"{required} or more replicas of each topic, all in sync")


def rights_finding(process: Process, missing: Sequence[str]) -> Finding:
    """Check that the credentials have the rights of a process."""
    name = f"rights: {process}"
    if missing:
        fix = f"grant them (docs/operate/permissions.md lists all), or use --for if the {process} has other credentials"
        return Finding(name, False, f"missing: {', '.join(missing)}", fix)
    return Finding(name, True, "all rights on topics and groups")
