"""`svc doctor` and Kafka: what keeps us out, and what we find inside: topics, their settings, partitions, replicas, rights."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from broker.cluster import ClusterView, look
from broker.diagnosis import addresses, why_refused
from broker.errors import KafkaError
from broker.rights import Process, RequiredRights, lacking
from broker.topics import FoundTopic, TopicDifference, setting_differences, topic_settings
from cli.doctor.checks import Finding
from schemas.settings import KafkaSettings
from schemas.topics import Topic, TopicSpec, topic_specs

SECONDS = 15.0
NAME = "kafka"
NO_ONE: Mapping[Process, RequiredRights] = MappingProxyType({})
SAME_PARTITIONS = (Topic.EVENTS, Topic.GROUPED, Topic.ISSUE_DELTAS, Topic.ISSUES, Topic.SEEN)
"""Topics whose partitions belong together."""


def check_kafka(settings: KafkaSettings, needed: Mapping[Process, RequiredRights] = NO_ONE) -> list[Finding]:
    """Everything between us and our topics, and what these processes may do there; the first that keeps us out ends the list."""
    if not settings.kafka_bootstrap:
        mend = "start `svc up` on this data directory, or set SVC_KAFKA_BOOTSTRAP"
        return [Finding(NAME, False, "no address is known", mend)]
    troubles: list[Finding] = []
    for address in addresses(settings):
        reason = why_refused(settings, address)
        if reason is None:
            return [*troubles, *_inside(settings, address, needed)]
        troubles.append(Finding(NAME, False, reason.said, reason.mend))
    return troubles


def _inside(settings: KafkaSettings, address: str, needed: Mapping[Process, RequiredRights]) -> list[Finding]:
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    specs = topic_specs(settings.topic_prefix, settings.topic_overrides, 1, settings.topic_replication)
    groups = [group for need in needed.values() for group in need.groups]
    try:
        view, configs = asyncio.run(_look(settings, specs, groups))
    except (KafkaError, OSError) as error:
        said = f"{address} lets us in and then does not answer ({error or type(error).__name__})"
        return [
            Finding(NAME, False, said, "look at the broker's log; is every advertised address reachable?")
        ]
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
    ]


async def _look(
    settings: KafkaSettings, specs: Sequence[TopicSpec], groups: Sequence[str]
) -> tuple[ClusterView, dict[str, dict[str, str]]]:
    async with asyncio.timeout(SECONDS):
        view = await look(settings, [spec.name for spec in specs], groups)
        return view, await topic_settings(settings, _seen(specs, view))


def _seen(specs: Sequence[TopicSpec], view: ClusterView) -> list[TopicSpec]:
    return [spec for spec in specs if spec.name in view.topics]


def topics_finding(specs: Sequence[TopicSpec], view: ClusterView) -> Finding:
    """Are all topics there? Those that these credentials may not see are the business of the rights."""
    missing = [spec.name for spec in specs if spec.name in view.missing]
    if missing:
        return Finding("topics", False, f"missing: {', '.join(missing)}", "run `svc migrate`")
    hidden = [spec.name for spec in specs if spec.name not in view.topics]
    said = (
        f"all that may be seen are there; hidden from us: {', '.join(hidden)}" if hidden else "all are there"
    )
    return Finding("topics", True, said)


def settings_finding(
    specs: Sequence[TopicSpec], view: ClusterView, configs: Mapping[str, dict[str, str]], address: str
) -> Finding:
    """The topics that exist have the settings that the processes rely on; what may not be read is said, and no fault."""
    seen = _seen(specs, view)
    found = [one for spec in seen for one in setting_differences(spec, _found(spec.name, view, configs))]
    wrong = [one for one in found if not one.harmless]
    said = [one.said for one in wrong or found]
    if hidden := [spec.name for spec in seen if spec.name not in configs]:
        said.append(f"not compared, for want of DescribeConfigs: {', '.join(hidden)}")
    if wrong:
        return Finding("topic settings", False, "; ".join(said), _mend(wrong, address))
    if found:
        said[0] = f"not as asked, but harmless: {said[0]}"
    return Finding("topic settings", True, "; ".join(said) or "as asked")


def _found(name: str, view: ClusterView, configs: Mapping[str, dict[str, str]]) -> FoundTopic:
    topic = view.topics[name]
    return FoundTopic(topic.partitions, min(topic.replicas), configs.get(name))


def _mend(wrong: Sequence[TopicDifference], address: str) -> str:
    asked: dict[str, list[str]] = {}
    for one in wrong:
        asked.setdefault(one.topic, []).append(one.setting)
    return "; ".join(
        f"kafka-configs.sh --bootstrap-server {address} --alter --entity-type topics --entity-name {topic} --add-config {','.join(all_of)}"
        for topic, all_of in asked.items()
    )


def partitions_finding(settings: KafkaSettings, view: ClusterView) -> Finding:
    """Topics whose partitions belong together have equally many."""
    specs = topic_specs(settings.topic_prefix, settings.topic_overrides, 1, 1)
    together = [spec.name for spec, topic in zip(specs, Topic, strict=True) if topic in SAME_PARTITIONS]
    counts = {name: view.topics[name].partitions for name in together if name in view.topics}
    if len(set(counts.values())) > 1:
        said = "unequal: " + ", ".join(f"{name} has {count}" for name, count in counts.items())
        mend = "give them equally many before the first event (kafka-topics.sh --alter); the processors don't start so"
        return Finding("partitions", False, said, mend)
    return Finding("partitions", True, "equally many where they belong together")


def replication_finding(specs: Sequence[TopicSpec], view: ClusterView, asked: int) -> Finding:
    """There can be as many replicas as asked, each topic has as many, and all are in sync."""
    if asked > view.brokers:
        said = f"{asked} replicas are asked for, and the cluster has {view.brokers} brokers"
        return Finding("replication", False, said, "add brokers, or lower SVC_TOPIC_REPLICATION")
    seen = {spec.name: view.topics[spec.name] for spec in specs if spec.name in view.topics}
    few = [f"{name} has {min(t.replicas)}" for name, t in seen.items() if min(t.replicas) < asked]
    if few:
        said = f"asked are {asked} replicas; {', '.join(few)}"
        return Finding("replication", False, said, "reassign the partitions, or lower SVC_TOPIC_REPLICATION")
    behind = [
        name for name, t in seen.items() if any(s < r for s, r in zip(t.in_sync, t.replicas, strict=True))
    ]
    if behind:
        return Finding(
            "replication",
            False,
            f"replicas are out of sync: {', '.join(behind)}",
            "look at the brokers' logs",
        )
    return Finding("replication", True, f"{asked} or more replicas of each topic, all in sync")


def rights_finding(process: Process, missing: Sequence[str]) -> Finding:
    """These credentials may do what a process does."""
    name = f"rights: {process}"
    if missing:
        mend = f"allow it (docs/operate/permissions.md lists all), or ask with --for if the {process} has other credentials"
        return Finding(name, False, f"missing: {', '.join(missing)}", mend)
    return Finding(name, True, "each topic and group may be used")
