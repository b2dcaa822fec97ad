"""The topics (contract, section 3): name, key, value and settings of each."""

import re
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final

from msgspec import Struct

from schemas.errors import BadSetting
from schemas.times import DAY_MS, HOUR_MS, MINUTE_MS

MAX_RECORD_BYTES = 4 * 1024 * 1024
_SEGMENT_MS = 5 * MINUTE_MS
_LEGAL_NAME: Final = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}")


class Topic(Enum):
    """A topic: (name under the prefix, key, value, cleanup, retention in days or 0, partitions follow the settings)."""

    EVENTS = ("events", "none", "chunk of accepted events", "delete", 7, True)
    GROUPED = (
        "grouped",
        "none",
        "which events of a record of `events` are new, and their grouping",
        "delete",
        7,
        True,
    )
    GROUPED_EVENTS = ("grouped-events", "project/id", "one event", "delete", 7, True)
    ISSUE_DELTAS = ("issue-deltas", "none", "increments and commands", "delete", 7, True)
    ISSUES = ("issues", "issue", "aggregate and state of an issue", "compact", 0, True)
    ISSUE_ACTIVITY = ("issue-activity", "issue or project", "one change of it", "delete", 30, True)
    PROJECTS = ("projects", "project", "a project", "compact", 0, False)
    OUTCOMES = ("outcomes", "project", "counts by minute, SDK, outcome and reason", "delete", 7, True)
    DEAD_LETTERS = ("dead-letters", "as the original", "the original bytes", "delete", 30, False)
    NOTIFICATIONS = (
        "notifications",
        "none",
        "decided and sent notifications",
        "delete",
        30,
        False,
    )
    SEEN = ("seen", "partition/offset", "ids first carried by a source record", "compact", 0, True)

    def __init__(self, title: str, key: str, value: str, cleanup: str, days: int, spread: bool) -> None:
        self.title = title
        self.key = key
        self.record = value
        self.cleanup = cleanup
        self.days = days
        self.spread = spread


SAME_PARTITIONS: Final = (Topic.EVENTS, Topic.GROUPED, Topic.ISSUE_DELTAS, Topic.ISSUES, Topic.SEEN)
"""Their records of one partition belong together."""
AS_MANY_PARTITIONS: Final = (Topic.GROUPED_EVENTS, Topic.ISSUE_ACTIVITY, Topic.OUTCOMES)
"""They are written by the partition of the source, and may have more."""


def unequal_partitions(counts: Mapping[Topic, int], name: Callable[[Topic], str]) -> str:
    """The faults in the numbers of partitions of existing topics; empty if there are none.

    `name` names the topics on the broker.
    """
    same = {topic: counts[topic] for topic in SAME_PARTITIONS if topic in counts}
    most = max(same.values(), default=0)
    fewer = {topic: counts[topic] for topic in AS_MANY_PARTITIONS if topic in counts and counts[topic] < most}
    problems = []
    if len(set(same.values())) > 1:
        problems.append(f"{_counted(same, name)}: these must be equal")
    if fewer:
        problems.append(f"{_counted(fewer, name)}, fewer than the {most} of {name(Topic.EVENTS)}")
    return "; ".join(problems)


def _counted(counts: Mapping[Topic, int], name: Callable[[Topic], str]) -> str:
    return ", ".join(f"{name(topic)} has {count}" for topic, count in counts.items())


class TopicSpec(Struct, frozen=True):
    """A topic to be created by `svc migrate`; `configs` are the broker's topic settings."""

    name: str
    partitions: int
    replication: int
    configs: dict[str, str]


def whole_names(text: str) -> dict[str, str]:
    """Whole names by title, from `events=NAME,grouped=NAME`. Raises BadSetting for names that Kafka would refuse."""
    titles = [topic.title for topic in Topic]
    names: dict[str, str] = {}
    for entry in text.split(",") if text.strip() else ():
        title, separator, name = (part.strip() for part in entry.partition("="))
        if not separator:
            raise BadSetting(f"SVC_TOPIC_NAMES: {entry.strip()!r} is not of the form TOPIC=NAME")
        if title not in titles:
            raise BadSetting(f"SVC_TOPIC_NAMES: no topic {title!r}; the topics are {', '.join(titles)}")
        if title in names:
            raise BadSetting(f"SVC_TOPIC_NAMES names {title} twice")
        if not _LEGAL_NAME.fullmatch(name):
            raise BadSetting(
                f"SVC_TOPIC_NAMES: {title} can't be {name!r}: letters, digits, '.', '_' and '-', at most 249"
            )
        names[title] = name
    return names


def check_distinct(prefix: str, overrides: Mapping[str, str]) -> None:
    """Raise BadSetting where two topics have one name. Kafka refuses two that differ in `.` and `_` only."""
    found: dict[str, Topic] = {}
    for topic in Topic:
        name = topic_name(topic, prefix, overrides)
        other = found.setdefault(name.replace(".", "_"), topic)
        if other is not topic:
            raise BadSetting(f"SVC_TOPIC_NAMES: {other.title} and {topic.title} would both be {name}")


def topic_name(topic: Topic, prefix: str, overrides: Mapping[str, str]) -> str:
    """The topic's name on the broker; `overrides` maps titles to whole names."""
    return overrides.get(topic.title, prefix + topic.title)


def topic_specs(
    prefix: str, overrides: Mapping[str, str], partitions: int, replication: int
) -> list[TopicSpec]:
    """Specifications of all topics, in the order of the data."""
    return [
        TopicSpec(
            name=topic_name(topic, prefix, overrides),
            partitions=partitions if topic.spread else 1,
            replication=replication,
            configs=_configs(topic, replication),
        )
        for topic in Topic
    ]


def _configs(topic: Topic, replication: int) -> dict[str, str]:
    configs = {
        "cleanup.policy": topic.cleanup,
        "max.message.bytes": str(MAX_RECORD_BYTES),
        "min.insync.replicas": str(max(1, replication - 1)),
    }
    if topic.cleanup == "compact":
        # Compact soon: a topic that is read completely at each start must stay close to its live size. The
        # newest segment is never compacted. `seen` may hold gigabytes, in files that stay open, but its
        # records are few.
        configs |= {
            "min.cleanable.dirty.ratio": "0.2",
            "segment.ms": str(_SEGMENT_MS),
            "segment.bytes": str((64 if topic is Topic.SEEN else 8) * 1024 * 1024),
            # Tombstones stay for slow readers; entries of `seen` are numerous and short-lived.
            "delete.retention.ms": str(HOUR_MS if topic is Topic.SEEN else DAY_MS),
        }
    else:
        configs["retention.ms"] = str(topic.days * DAY_MS)
    if topic in {Topic.EVENTS, Topic.GROUPED}:
        # A segment expires as a whole: the small ones of `grouped` would outlive the events they refer to by weeks.
        configs["segment.ms"] = str(DAY_MS)
    if topic is Topic.EVENTS:
        # Ids expire by this clock: the brokers share one, the edges' may be wrong.
        configs["message.timestamp.type"] = "LogAppendTime"
    return configs
