"""What `svc migrate` says of topics that exist."""

from local.migrate import closing
from schemas.topics import TopicSpec
from storage.topics import FoundTopic, TopicsReport, differences, unknown

SPEC = TopicSpec("svc.events", 4, 3, {"cleanup.policy": "delete", "retention.ms": "604800000"})


def test_a_topic_as_asked_differs_in_nothing() -> None:
    found = FoundTopic(4, 3, dict(SPEC.configs))
    assert list(differences(SPEC, found)) == []
    assert list(unknown(SPEC, found)) == []


def test_partitions_replicas_and_settings_that_differ_are_named() -> None:
    found = FoundTopic(8, 1, {"cleanup.policy": "compact", "retention.ms": "604800000"})
    assert list(differences(SPEC, found)) == [
        "svc.events has 8 partitions, asked are 4",
        "svc.events has 1 replicas, asked are 3",
        "svc.events has cleanup.policy=compact, asked is delete",
    ]


def test_more_replicas_than_asked_are_no_difference() -> None:
    assert list(differences(SPEC, FoundTopic(4, 5, dict(SPEC.configs)))) == []


def test_what_the_broker_does_not_tell_is_unknown_and_no_agreement() -> None:
    found = FoundTopic(None, None, None)
    assert list(differences(SPEC, found)) == []
    assert list(unknown(SPEC, found)) == [
        "the partitions of svc.events (Describe is refused)",
        "the settings of svc.events (DescribeConfigs is refused)",
    ]


def test_up_to_date_is_said_only_of_what_was_compared() -> None:
    def said(**lists: list[str]) -> str:
        return closing(TopicsReport(**{"created": [], "differences": [], "unknown": [], **lists}))

    assert said() == "nothing to do: topics and schema are up to date"
    assert "not every topic could be compared" in said(unknown=["the settings of svc.events"])
    assert "the differences above" in said(differences=["svc.events has 8 partitions, asked are 4"])
