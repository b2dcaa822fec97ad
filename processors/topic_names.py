"""Names on the broker of the topics that the processors read and write, and their number of partitions."""

from msgspec import Struct

from broker.client import name_of
from schemas.settings import KafkaSettings
from schemas.topics import Topic


class TopicNames(Struct, frozen=True):
    """Names on the broker. `partitions` is that of the source, which the others have too, except dead letters."""

    events: str
    grouped: str
    grouped_events: str
    deltas: str
    issues: str
    activity: str
    outcomes: str
    dead_letters: str
    seen: str
    partitions: int


def names(settings: KafkaSettings, partitions: int) -> TopicNames:
    """The names with these settings."""
    return TopicNames(
        events=name_of(settings, Topic.EVENTS),
        grouped=name_of(settings, Topic.GROUPED),
        grouped_events=name_of(settings, Topic.GROUPED_EVENTS),
        deltas=name_of(settings, Topic.ISSUE_DELTAS),
        issues=name_of(settings, Topic.ISSUES),
        activity=name_of(settings, Topic.ISSUE_ACTIVITY),
        outcomes=name_of(settings, Topic.OUTCOMES),
        dead_letters=name_of(settings, Topic.DEAD_LETTERS),
        seen=name_of(settings, Topic.SEEN),
        partitions=partitions,
    )
