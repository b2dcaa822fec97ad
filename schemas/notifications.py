"""Notifications: rules of projects, the causes that they choose from, and the records of the topic `notifications`.

The topic has one partition. Its order decides: all decisions and messages follow from its records, read from
the first to the last.
"""

from typing import Final, Literal, get_args

import msgspec
from msgspec import Struct

from schemas.issues import Activity, Subject

CauseKind = Literal[
    "created", "regressed", "reopened", "seenInRelease", "seenInEnvironment", "usersReached", "escalated"
]
"""Kinds of activity that a rule can choose, if an event caused them."""
CAUSES: Final[tuple[CauseKind, ...]] = get_args(CauseKind)
DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


class QuietHours(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Hours in which nothing is sent; the causes meanwhile are sent together when they end.

    They last from `start` to `end` (HH:MM) by the clock of `zone`, a name of the IANA database, over midnight
    where `end` is earlier. `days` are whole days that are quiet as well.
    """

    start: str
    end: str
    zone: str = "UTC"
    days: tuple[str, ...] = ()


MOST_PER_HOUR: Final = 30
"""Default limit: during a flood of new issues so many are sent, and then all others in one message."""


class NotificationRule(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Which causes of a project are sent, where, and when.

    A cause is sent if its kind is among `causes`, `query` holds for the issue as it was then, and the issue
    was open. `users` is the least number for `usersReached`. With `digest_minutes` causes wait for each
    other, with `most_per_hour` for their turn; those that waited are sent in one message. `to` are recipients,
    for channels that want some. `without_content`: the message says no more of the issue than its id and link.
    """

    id: str
    name: str
    causes: tuple[str, ...]
    channels: tuple[str, ...]
    query: str = ""
    users: int = 0
    to: tuple[str, ...] = ()
    digest_minutes: int = 0
    most_per_hour: int = MOST_PER_HOUR
    quiet: QuietHours | None = None
    without_content: bool = False
    enabled: bool = True


class Cause(Struct, frozen=True, rename="camel"):
    """Something that happened to an issue: an activity that an event caused, with its id."""

    id: str
    project_id: str
    issue: str
    kind: CauseKind
    at: str
    subject: Subject
    value: str = ""
    """The release, the environment or the number that the cause is about."""


def cause_of(activity: Activity) -> Cause | None:
    """The cause that an activity is; None for changes by people and for kinds that no rule can choose."""
    if activity.subject is None or activity.kind not in CAUSES:
        return None
    named = [
        str(activity.data[name])
        for name in ("release", "environment", "users", "events")
        if name in activity.data
    ]
    return Cause(
        id=activity.id,
        project_id=activity.project_id,
        issue=activity.issue,
        kind=activity.kind,
        at=activity.at,
        subject=activity.subject,
        value=named[0] if named else "",
    )


class CauseRecord(Struct, frozen=True, rename="camel", tag="cause"):
    """A cause, read from this position of `issue-activity`."""

    at_ms: int
    cause: Cause
    partition: int
    offset: int


class PositionRecord(Struct, frozen=True, rename="camel", tag="position"):
    """How far `issue-activity` was read: by partition the next offset."""

    at_ms: int
    next_offsets: dict[int, int]


class RulesRecord(Struct, frozen=True, rename="camel", tag="rules"):
    """The rules of a project from here on."""

    at_ms: int
    project_id: str
    rules: tuple[NotificationRule, ...]


class ChannelsRecord(Struct, frozen=True, rename="camel", tag="channels"):
    """The names of the channels from here on."""

    at_ms: int
    names: tuple[str, ...]


class TimeRecord(Struct, frozen=True, rename="camel", tag="time"):
    """The time that has come: causes that had to wait until then are sent."""

    at_ms: int


class DeliveryRecord(Struct, frozen=True, rename="camel", tag="delivery", omit_defaults=True):
    """An attempt to send a message through a channel. With neither `delivered` nor `next_ms` it was given up."""

    at_ms: int
    message: str
    delivered: bool = False
    attempts: int = 1
    next_ms: int = 0
    error: str = ""


class ChannelTestRecord(Struct, frozen=True, rename="camel", tag="channelTest"):
    """A person asks for a test message through a channel; `id` is that of the request."""

    at_ms: int
    id: str
    project_id: str
    channel: str
    to: tuple[str, ...] = ()


NotificationRecord = (
    CauseRecord
    | PositionRecord
    | RulesRecord
    | ChannelsRecord
    | TimeRecord
    | DeliveryRecord
    | ChannelTestRecord
)
"""A value of `notifications`; `at_ms` is the clock of the process that wrote it (Unix ms)."""
encode_notification: Final = msgspec.json.Encoder().encode
decode_notification: Final = msgspec.json.Decoder(NotificationRecord).decode
