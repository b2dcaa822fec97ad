"""The checks of `svc doctor` on Kafka: connection, topics, replicas, rights."""

import asyncio
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence

from broker.cluster import ClusterView, describe_cluster
from broker.errors import KafkaError
from broker.kafka_diagnosis import addresses, why_refused
from broker.rights import Process, RequiredRights, lacking
from broker.topics import FoundTopic, TopicDifference, differences, topic_settings
from cli.doctor.basic_checks import Finding
from schemas.settings import KafkaSettings
from schemas.topics import Topic, TopicSpec, topic_specs, unequal_partitions

SECONDS = 15.0
NAME = "kafka"


def check_kafka(settings: KafkaSettings, needed: Mapping[Process, RequiredRights]) -> list[Finding]:
    """Check the connection, and the topics and rights of the processes; stops after failed connections."""
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
    wanted = {topic for need in needed.values() for topic in need.topics}
    every = topic_specs(settings.topic_prefix, settings.topic_overrides, 1, settings.topic_replication)
    specs = {topic: spec for spec, topic in zip(every, Topic, strict=True) if topic in wanted}
    groups = [group for need in needed.values() for group in (*need.groups, *need.describes_groups)]
    try:
        view, configs = asyncio.run(_look(settings, list(specs.values()), groups))
    except (KafkaError, OSError) as error:
        reason = str(error) or type(error).__name__
        detail = f"{address} accepts the connection but does not answer ({reason})"
        fix = "see the broker's log; is every advertised address reachable?"
        return [Finding(NAME, False, detail, fix)]
    allowed = view.allowed(spec.name for spec in specs.values())
    return [
        Finding(NAME, True, f"{address} answers"),
        *topics_findings(specs, view, configs, address),
        replication_finding(view, settings.topic_replication),
        *(
            rights_finding(process, lacking(need, settings, allowed, view.groups))
            for process, need in needed.items()
        ),
    ]


async def _look(
    settings: KafkaSettings, specs: Sequence[TopicSpec], groups: Sequence[str]
) -> tuple[ClusterView, dict[str, dict[str, str]]]:
    async with asyncio.timeout(SECONDS):
        view = await describe_cluster(settings, [spec.name for spec in specs], groups)
        return view, await topic_settings(settings, [spec for spec in specs if spec.name in view.topics])


def topics_findings(
    specs: Mapping[Topic, TopicSpec], view: ClusterView, configs: Mapping[str, dict[str, str]], address: str
) -> Iterator[Finding]:
    """The problems of the topics; a single ok finding if there are none."""
    names = {topic: spec.name for topic, spec in specs.items()}
    seen = {topic: view.topics[name] for topic, name in names.items() if name in view.topics}
    found = [
        difference
        for topic, one in seen.items()
        for difference in differences(
            specs[topic], FoundTopic(None, min(one.replicas), configs.get(names[topic]))
        )
    ]
    wrong = [difference for difference in found if not difference.harmless]
    problems = [
        *_named("missing", (name for name in names.values() if name in view.missing), "run `svc migrate`"),
        *_named(
            "not checked, Describe is not allowed",
            (name for name in names.values() if name not in view.topics and name not in view.missing),
            "grant the rights below, or use --for if these credentials need fewer",
        ),
    ]
    counts = {topic: one.partitions for topic, one in seen.items()}
    if unequal := unequal_partitions(counts, lambda topic: names.get(topic, topic.title)):
        fix = "add partitions before the first event (kafka-topics.sh --alter); otherwise the processors don't start"
        problems.append((unequal, fix))
    if wrong:
        problems.append(("; ".join(one.message for one in wrong), _fix(wrong, address)))
    for problem, fix in problems:
        yield Finding("topics", False, problem, fix)
    if not problems:
        notes = (
            [f"not as specified, but harmless: {'; '.join(one.message for one in found)}"] if found else []
        )
        hidden = (name for topic, name in names.items() if topic in seen and name not in configs)
        notes += [note for note, _ in _named("not compared, DescribeConfigs is not allowed", hidden, "")]
        yield Finding("topics", True, "; ".join(notes) or "all are as specified", _fix(found, address))


def _named(problem: str, names: Iterable[str], fix: str) -> Iterator[tuple[str, str]]:
    if listed := ", ".join(names):
        yield f"{problem}: {listed}", fix


def _fix(found: Sequence[TopicDifference], address: str) -> str:
    settings: dict[str, list[str]] = {}
    for difference in found:
        if difference.setting:
            settings.setdefault(difference.topic, []).append(difference.setting)
    commands = [
        f"kafka-configs.sh --bootstrap-server {address} --alter --entity-type topics --entity-name {topic} "
        f"--add-config {','.join(configs)}"
        for topic, configs in settings.items()
    ]
    if any(not (difference.setting or difference.harmless) for difference in found):
        commands.append("reassign the partitions, or lower SVC_TOPIC_REPLICATION")
    return "; ".join(commands)


def replication_finding(view: ClusterView, required: int) -> Finding:
    """Check that the cluster can have the required replicas, and that all replicas are in sync."""
    if required > view.brokers:
        detail = f"{required} replicas are required, but the cluster has {view.brokers} brokers"
        return Finding("replication", False, detail, "add brokers, or lower SVC_TOPIC_REPLICATION")
    behind = [name for name, topic in view.topics.items() if topic.in_sync != topic.replicas]
    if behind:
        detail = f"replicas are out of sync: {', '.join(behind)}"
        return Finding("replication", False, detail, "see the brokers' logs")
    return Finding("replication", True, "all replicas are in sync")


def rights_finding(process: Process, missing: Sequence[str]) -> Finding:
    """Check that the credentials have the rights of a process."""
    name = f"rights: {process}"
    if missing:
        fix = f"grant them (docs/operate/permissions.md lists all), or use --for if the {process} has other credentials"
        return Finding(name, False, f"missing: {', '.join(missing)}", fix)
    return Finding(name, True, "all rights on topics and groups")
