"""The Kafka rights that each process requires, and which are missing. Pure.

docs/operate/permissions.md has the same table.
"""

from collections.abc import Iterable, Mapping
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from schemas.settings import KafkaSettings, PipelineSettings
from schemas.topics import Topic, topic_name

Process = Literal["edge", "processors", "writer", "dashboard", "notify", "operator"]
PROCESSES: Final[tuple[Process, ...]] = ("edge", "processors", "writer", "dashboard", "notify", "operator")
"""With the operator, who runs commands."""
DEAD_LETTERS_GROUP: Final = "dead-letters-replay"
"""The group of `svc dead-letters`, behind the prefix."""


class RequiredRights(Struct, frozen=True):
    """Topics that a process reads and writes, and its consumer groups. Read and Write imply Describe.

    Without the rights on the topics and groups that it `describes`, its work continues: the audit fails, or a
    page or command can't tell whether the pipeline is behind. `compares` are topics whose settings it compares.
    """

    reads: tuple[Topic, ...]
    writes: tuple[Topic, ...]
    groups: tuple[str, ...] = ()
    describes: tuple[Topic, ...] = ()
    describes_groups: tuple[str, ...] = ()
    compares: tuple[Topic, ...] = ()

    @property
    def topics(self) -> list[Topic]:
        return list(dict.fromkeys([*self.reads, *self.writes, *self.describes]))

    @property
    def to_start(self) -> "RequiredRights":
        """The rights without which the process does not begin."""
        return replace(self, describes=(), describes_groups=())


def record_groups(writer_group: str, shards: int) -> tuple[str, ...]:
    """The consumer groups that write issues, activity and outcomes: each shard has all of these."""
    group = f"{writer_group}-records"
    return (group,) if shards == 1 else tuple(f"{group}-{number + 1}" for number in range(shards))


def needs(settings: PipelineSettings, notify_group: str = "svc-notify") -> dict[Process, RequiredRights]:
    """The rights that each process requires."""
    processors_app, writer_group = settings.processors_app, settings.writer_group
    of_records = record_groups(writer_group, max(1, len(settings.shard_urls)))
    results = (
        *(Topic.GROUPED, Topic.ISSUE_DELTAS, Topic.ISSUES, Topic.SEEN, Topic.ISSUE_ACTIVITY, Topic.OUTCOMES),
        *((Topic.GROUPED_EVENTS,) if settings.grouped_events else ()),
    )
    every = tuple(topic for topic in Topic if settings.grouped_events or topic is not Topic.GROUPED_EVENTS)
    return {
        "edge": RequiredRights(reads=(Topic.PROJECTS,), writes=(Topic.EVENTS, Topic.OUTCOMES)),
        "processors": RequiredRights(
            reads=(
                *(Topic.EVENTS, Topic.GROUPED, Topic.ISSUE_DELTAS, Topic.ISSUES),
                *(Topic.SEEN, Topic.PROJECTS),
            ),
            writes=(*results, Topic.DEAD_LETTERS),
            groups=(processors_app,),
        ),
        "writer": RequiredRights(
            reads=(
                *(Topic.EVENTS, Topic.GROUPED, Topic.ISSUES, Topic.ISSUE_ACTIVITY),
                *(Topic.OUTCOMES, Topic.PROJECTS),
            ),
            writes=(Topic.DEAD_LETTERS, Topic.OUTCOMES),
            groups=(writer_group, *of_records),
            describes_groups=(processors_app,),
        ),
        "dashboard": RequiredRights(
            reads=(Topic.PROJECTS, Topic.ISSUES, Topic.NOTIFICATIONS),
            writes=(Topic.PROJECTS, Topic.ISSUE_DELTAS, Topic.ISSUE_ACTIVITY, Topic.NOTIFICATIONS),
            describes=(Topic.EVENTS, Topic.GROUPED),
            describes_groups=(processors_app, writer_group),
        ),
        "notify": RequiredRights(
            reads=(Topic.PROJECTS, Topic.ISSUES, Topic.ISSUE_ACTIVITY, Topic.NOTIFICATIONS),
            writes=(Topic.NOTIFICATIONS,),
            groups=(notify_group,),
        ),
        "operator": RequiredRights(
            reads=every,
            writes=(
                *(Topic.EVENTS, Topic.GROUPED, Topic.ISSUE_DELTAS, Topic.ISSUES, Topic.SEEN),
                *(Topic.PROJECTS, Topic.DEAD_LETTERS, Topic.ISSUE_ACTIVITY),
            ),
            groups=(settings.topic_prefix + DEAD_LETTERS_GROUP,),
            describes_groups=(processors_app, writer_group, *of_records),
            compares=every,
        ),
    }


class KafkaRight(Struct, frozen=True):
    """An operation on a topic or a group, as Kafka's ACLs name them."""

    operation: str
    kind: Literal["topic", "group"]
    name: str

    def __str__(self) -> str:
        return f"{self.operation} on {self.kind} {self.name}"


def rights_of(need: RequiredRights, settings: KafkaSettings) -> list[KafkaRight]:
    """The single rights that an operator grants."""
    topics = (
        ("Read", need.reads),
        ("Write", need.writes),
        ("Describe", need.describes),
        ("DescribeConfigs", need.compares),
    )
    groups = (("Read", need.groups), ("Describe", need.describes_groups))
    return [
        *(
            KafkaRight(operation, "topic", name)
            for operation, those in topics
            for name in names_of(those, settings)
        ),
        *(KafkaRight(operation, "group", name) for operation, those in groups for name in those),
    ]


def rebuild_rights(settings: KafkaSettings) -> list[KafkaRight]:
    """The rights of `svc rebuild` beyond the operator's: it deletes the records of these topics."""
    return [
        KafkaRight(operation, "topic", name)
        for name in names_of((Topic.ISSUES, Topic.SEEN), settings)
        for operation in ("Delete", "AlterConfigs")
    ]


def lacking(
    need: RequiredRights,
    settings: KafkaSettings,
    topics: Mapping[str, frozenset[str]],
    groups: Mapping[str, frozenset[str]],
) -> list[str]:
    """The missing rights as an operator grants them: `Write on topic svc.events`.

    `topics` and `groups` map names to allowed operations; topics and groups that they lack are not checked.
    """
    allowed = {"topic": topics, "group": groups}
    return [
        str(right)
        for right in rights_of(need, settings)
        if right.operation not in allowed[right.kind].get(right.name, {right.operation})
    ]


def names_of(topics: Iterable[Topic], settings: KafkaSettings) -> list[str]:
    """The topics' names on the broker."""
    return [topic_name(topic, settings.topic_prefix, settings.topic_overrides) for topic in topics]
