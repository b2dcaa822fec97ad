"""Findings of doctor about a cluster."""

import pytest

from broker.cluster import OPERATIONS, ClusterView, TopicView, operations
from broker.rights import RequiredRights, lacking
from cli.doctor.kafka_check import replication_finding, rights_finding, topics_findings
from schemas.settings import KafkaSettings
from schemas.topics import Topic, topic_specs

SETTINGS = KafkaSettings()
SPECS = dict(zip(Topic, topic_specs("svc.", {}, 1, 3), strict=True))
READ, ALL = frozenset({"Read", "Describe"}), frozenset({"Read", "Write", "Describe"})


def topic(partitions: int = 4, replicas: int = 3, in_sync: int = 3) -> TopicView:
    return TopicView([replicas] * partitions, [in_sync] * partitions, ALL)


def view(**changed: TopicView | None) -> ClusterView:
    """A cluster of three brokers with all topics; one that is given as None is missing."""
    topics = {spec.name: topic() for spec in SPECS.values()} | {
        f"svc.{name.replace('_', '-')}": topic for name, topic in changed.items()
    }
    return ClusterView(
        brokers=3,
        topics={name: topic for name, topic in topics.items() if topic},
        missing=frozenset(name for name, topic in topics.items() if topic is None),
        groups={},
    )


def configs(**changed: dict[str, str]) -> dict[str, dict[str, str]]:
    """The settings that are asked for, but for those that are given."""
    return {
        spec.name: spec.configs | changed.get(spec.name.removeprefix("svc.").replace("-", "_"), {})
        for spec in SPECS.values()
    }


def wrong(view: ClusterView, configs: dict[str, dict[str, str]]) -> list[str]:
    """The problems of the topics."""
    return [finding.message for finding in topics_findings(SPECS, view, configs, "") if not finding.ok]


def test_a_cluster_as_specified_is_fine() -> None:
    (finding,) = topics_findings(SPECS, view(), configs(), "")
    assert (finding.ok, finding.message, finding.fix) == (True, "all are as specified", "")
    assert replication_finding(view(), 3).ok


def test_topics_that_may_not_be_seen_are_not_called_missing() -> None:
    seen = view()
    hidden = ClusterView(3, {n: t for n, t in seen.topics.items() if n == "svc.events"}, frozenset(), {})
    (message,) = wrong(hidden, configs())
    assert "Describe is not allowed: svc.grouped" in message


def test_each_problem_has_a_finding() -> None:
    found = configs(events={"cleanup.policy": "compact"})
    missing, unequal, settings = wrong(view(seen=None, grouped=topic(8)), found)
    assert missing == "missing: svc.seen"
    assert "svc.events has 4, svc.grouped has 8" in unequal
    assert settings == "svc.events has cleanup.policy=compact, expected is delete"


def test_wrong_topic_settings_are_reported_with_their_commands() -> None:
    found = configs(
        events={"message.timestamp.type": "CreateTime", "segment.ms": "1"},
        issues={"cleanup.policy": "delete", "segment.bytes": "1000000", "max.message.bytes": "1000000"},
    )
    (finding,) = topics_findings(SPECS, view(), found, "broker:9092")
    assert not finding.ok
    assert finding.message == (
        "svc.events has message.timestamp.type=CreateTime, expected is LogAppendTime; "
        "svc.issues has cleanup.policy=delete, expected is compact; "
        "svc.issues has max.message.bytes=1000000, expected is 4194304"
    )
    command = "kafka-configs.sh --bootstrap-server broker:9092 --alter --entity-type topics --entity-name"
    assert finding.fix == (
        f"{command} svc.events --add-config message.timestamp.type=LogAppendTime; "
        f"{command} svc.issues --add-config cleanup.policy=compact,max.message.bytes=4194304"
    )


def test_harmless_settings_are_reported_as_ok() -> None:
    (finding,) = topics_findings(SPECS, view(), configs(events={"retention.ms": "-1"}), "")
    assert finding.ok
    assert (
        finding.message
        == "not as specified, but harmless: svc.events has retention.ms=-1, expected is 604800000"
    )
    assert not finding.fix


def test_unreadable_settings_are_reported_as_ok() -> None:
    found = configs()
    del found["svc.grouped"]
    (finding,) = topics_findings(SPECS, view(), found, "")
    assert finding.ok
    assert finding.message == "not compared, DescribeConfigs is not allowed: svc.grouped"


def test_topics_off_the_event_path_may_have_other_numbers_of_partitions() -> None:
    assert wrong(view(dead_letters=topic(1), outcomes=topic(9)), configs()) == []


@pytest.mark.parametrize("name", ["outcomes", "issue_activity", "grouped_events"])
def test_a_topic_that_lacks_a_partition_of_its_source_is_named(name: str) -> None:
    (message,) = wrong(view(**{name: topic(3)}), configs())
    assert message == f"svc.{name.replace('_', '-')} has 3, fewer than the 4 of svc.events"


def test_too_few_replicas_and_lagging_ones_are_wrong() -> None:
    assert "4 replicas are required, but the cluster has 3 brokers" in replication_finding(view(), 4).message
    few = configs(events={"min.insync.replicas": "1"})
    (finding,) = topics_findings(SPECS, view(events=topic(replicas=1, in_sync=1)), few, "")
    assert finding.message.startswith("svc.events has 1 replicas, expected are 3; ")
    assert finding.fix.endswith("reassign the partitions, or lower SVC_TOPIC_REPLICATION")
    assert "out of sync: svc.events" in replication_finding(view(events=topic(in_sync=2)), 3).message


def test_operations_are_read_from_the_bit_field() -> None:
    assert operations(1 << 4 | 1 << 8) == {"Write", "Describe"}
    # A broker that doesn't tell: the least integer.
    assert operations(-2147483648) == frozenset(OPERATIONS.values())


def test_each_missing_right_is_named_and_a_topic_that_is_not_there_is_not_judged() -> None:
    need = RequiredRights(reads=(Topic.EVENTS, Topic.SEEN), writes=(Topic.EVENTS,), groups=("workers",))
    missing = lacking(need, SETTINGS, {"svc.events": READ}, {"workers": frozenset({"Describe"})})
    assert missing == ["Write on topic svc.events", "Read on group workers"]
    assert not rights_finding("edge", missing).ok
    assert rights_finding("edge", []).ok
