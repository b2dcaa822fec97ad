"""The Kafka rights that each process requires (docs/operate/permissions.md has the same table), and which are missing. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Literal

from msgspec import Struct

from schemas.settings import KafkaSettings
from schemas.topics import Topic, topic_name

Process = Literal["edge", "processors", "writer", "dashboard"]
PROCESSES: Final[tuple[Process, ...]] = ("edge", "processors", "writer", "dashboard")


class RequiredRights(Struct, frozen=True):
    """Topics that a process reads and writes, and its consumer groups. Read and Write imply Describe."""

    reads: tuple[Topic, ...]
    writes: tuple[Topic, ...]
    groups: tuple[str, ...] = ()


def needs(processors_app: str, writer_group: str, *, grouped_events: bool) -> dict[Process, RequiredRights]:
    """The rights that each process requires, given the names of the consumer groups."""
    return {
        "edge": RequiredRights(reads=(Topic.PROJECTS,), writes=(Topic.EVENTS, Topic.OUTCOMES)),
        "processors": RequiredRights(
            reads=(
                *(Topic.EVENTS, Topic.GROUPED, Topic.ISSUE_DELTAS, Topic.ISSUES),
                *(Topic.SEEN, Topic.PROJECTS),
            ),
            writes=(
                *(Topic.GROUPED, Topic.ISSUE_DELTAS, Topic.ISSUES, Topic.SEEN),
                *(Topic.ISSUE_ACTIVITY, Topic.OUTCOMES, Topic.DEAD_LETTERS),
                *((Topic.GROUPED_EVENTS,) if grouped_events else ()),
            ),
            groups=(processors_app,),
        ),
        "writer": RequiredRights(
            reads=(Topic.GROUPED, Topic.ISSUES, Topic.ISSUE_ACTIVITY, Topic.OUTCOMES, Topic.PROJECTS),
            writes=(Topic.DEAD_LETTERS, Topic.OUTCOMES),
            groups=(writer_group, f"{writer_group}-records"),
        ),
        "dashboard": RequiredRights(
            reads=(Topic.PROJECTS, Topic.ISSUES), writes=(Topic.PROJECTS, Topic.ISSUE_DELTAS)
        ),
    }


def lacking(
    need: RequiredRights,
    settings: KafkaSettings,
    topics: Mapping[str, frozenset[str]],
    groups: Mapping[str, frozenset[str]],
) -> list[str]:
    """The missing rights as an operator grants them: `Write on topic svc.events`.

    `topics` and `groups` map names to allowed operations; topics and groups that they lack are not checked.
    """
    return [
        *_missing("Read", "topic", _names(need.reads, settings), topics),
        *_missing("Write", "topic", _names(need.writes, settings), topics),
        *_missing("Read", "group", need.groups, groups),
    ]


def _names(topics: Iterable[Topic], settings: KafkaSettings) -> list[str]:
    return [topic_name(topic, settings.topic_prefix, settings.topic_overrides) for topic in topics]


def _missing(
    operation: str, kind: str, names: Iterable[str], allowed: Mapping[str, frozenset[str]]
) -> Iterator[str]:
    return (
        f"{operation} on {kind} {name}" for name in names if operation not in allowed.get(name, {operation})
    )
