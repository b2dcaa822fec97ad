"""A notification as a webhook gets it."""

from msgspec import UNSET, Struct, UnsetType

from schemas.notifications import CauseKind


class Named(Struct, frozen=True):
    """A project or a rule."""

    id: str
    name: str


class MessageIssue(Struct, frozen=True, rename="camel"):
    """An issue of a message. Of a rule without content it has no more than its id and links.

    The figures are those of its life. `title` is the one that pages show: type and message on one line.
    `message` and `culprit` are empty while ClickHouse doesn't answer, and then the rest is from the time of its
    cause. `source` is the line of the culprit, if source maps name it.
    """

    id: str
    url: str
    snooze_url: str
    title: str | UnsetType = UNSET
    error_type: str | UnsetType = UNSET
    message: str | UnsetType = UNSET
    culprit: str | UnsetType = UNSET
    source: str | UnsetType = UNSET
    status: str | UnsetType = UNSET
    release: str | UnsetType = UNSET
    environment: str | UnsetType = UNSET
    total_events: int | UnsetType = UNSET
    total_users: int | UnsetType = UNSET
    assignee: str | UnsetType = UNSET


class MessageCause(Struct, frozen=True):
    """The cause of a message: `value` is its release, environment or number."""

    id: str
    kind: CauseKind
    at: str
    value: str
    url: str
    issue: MessageIssue


class WebhookMessage(Struct, frozen=True):
    """The body of a webhook. `id` is the same at each attempt; `count` causes, of which at most 20 are listed."""

    id: str
    project: Named
    rule: Named
    count: int
    causes: list[MessageCause]
