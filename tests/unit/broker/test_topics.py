"""Existing topics compared with the required ones, and the report of `svc migrate`."""

from typing import Any

import pytest

from broker.topics import FoundTopic, TopicDifference, TopicsReport, differences, unknown, visible
from cli.migrate import closing
from schemas.topics import TopicSpec, topic_specs

SPEC = TopicSpec("svc.events", 4, 3, {"cleanup.policy": "delete", "retention.ms": "604800000"})


def test_a_topic_as_asked_differs_in_nothing() -> None:
    found = FoundTopic(4, 3, dict(SPEC.configs))
    assert list(differences(SPEC, found)) == []
    assert list(unknown(SPEC, found)) == []


def test_partitions_replicas_and_settings_that_differ_are_named() -> None:
    found = FoundTopic(8, 1, {"cleanup.policy": "compact", "retention.ms": "604800000"})
    assert [one.message for one in differences(SPEC, found)] == [
        "svc.events has 8 partitions, expected are 4",
        "svc.events has 1 replicas, expected are 3",
        "svc.events has cleanup.policy=compact, expected is delete",
    ]


def test_more_replicas_than_asked_are_no_difference() -> None:
    assert list(differences(SPEC, FoundTopic(4, 5, dict(SPEC.configs)))) == []


def test_settings_that_the_broker_does_not_tell_are_unknown_and_no_agreement() -> None:
    found = FoundTopic(None, None, None)
    assert list(differences(SPEC, found)) == []
    assert list(unknown(SPEC, found)) == [
        "the partitions of svc.events (Describe is refused)",
        "the settings of svc.events (DescribeConfigs is refused)",
    ]


@pytest.mark.parametrize(
    ("topic", "setting", "have", "harmless"),
    [
        ("events", "retention.ms", "604799999", False),
        ("grouped", "retention.ms", "86400000", False),
        ("issue-deltas", "retention.ms", "1209600000", True),
        ("events", "retention.ms", "-1", True),
        ("events", "message.timestamp.type", "CreateTime", False),
        ("grouped", "max.message.bytes", "1000000", False),
        ("grouped", "max.message.bytes", "8388608", True),
        ("issues", "cleanup.policy", "delete", False),
        ("issues", "cleanup.policy", "compact,delete", False),
        ("events", "cleanup.policy", "compact", False),
        ("projects", "segment.bytes", "1073741824", True),
        ("projects", "segment.ms", "604800000", True),
        ("projects", "min.cleanable.dirty.ratio", "0.5", True),
        ("projects", "delete.retention.ms", "1000", False),
        ("seen", "delete.retention.ms", "86400000", True),
        ("events", "min.insync.replicas", "1", False),
        ("events", "min.insync.replicas", "3", True),
        # No write could be acknowledged.
        ("events", "min.insync.replicas", "4", False),
    ],
)
def test_a_setting_is_harmless_if_it_keeps_the_promise(
    topic: str, setting: str, have: str, harmless: bool
) -> None:
    spec = next(spec for spec in topic_specs("", {}, 4, 3) if spec.name == topic)
    (found,) = differences(spec, FoundTopic(spec.partitions, 3, {**spec.configs, setting: have}))
    more_than_required = harmless and not setting.startswith(("segment", "min.cleanable"))
    assert found == TopicDifference(
        topic=topic,
        message=f"{topic} has {setting}={have}, expected is {spec.configs[setting]}",
        setting="" if more_than_required else f"{setting}={spec.configs[setting]}",
        harmless=harmless,
    )


def test_only_compared_topics_are_called_up_to_date() -> None:
    def message(differences: list[TopicDifference] | None = None, unknown: list[str] | None = None) -> str:
        return closing(TopicsReport([], differences or [], unknown or []))

    assert message() == "nothing to do: topics and schema are up to date"
    assert "not every topic could be compared" in message(unknown=["the settings of svc.events"])
    wrong = TopicDifference("svc.events", "svc.events has 8 partitions, expected are 4")
    harmless = TopicDifference(
        "svc.events", "svc.events has segment.ms=1, expected is 2", "segment.ms=2", True
    )
    assert "the differences above" in message([harmless, wrong])
    assert message([harmless]) == "nothing to do: topics and schema are up to date"


class Described:
    """An admin client whose broker describes a topic with these error codes, one pair per answer.

    A pair is the code of the topic and that of its partition.
    """

    def __init__(self, *codes: tuple[int, int]) -> None:
        self.codes = list(codes)

    async def describe_topics(self, names: list[str]) -> list[dict[str, Any]]:
        code, of_partition = self.codes.pop(0)
        return [
            {"error_code": code, "topic": name, "partitions": [{"error_code": of_partition}]}
            for name in names
        ]


async def test_new_topics_are_waited_for_until_the_broker_knows_them_and_their_leaders() -> None:
    admin = Described((3, 0), (0, 5), (0, 0), (3, 0))
    await visible(admin, ["events"])
    assert admin.codes == [(3, 0)]


async def test_a_new_topic_that_may_not_be_described_is_not_waited_for() -> None:
    admin = Described((29, 0), (3, 0))
    await visible(admin, ["events"])
    assert admin.codes == [(3, 0)]
