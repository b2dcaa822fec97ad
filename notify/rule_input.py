"""Notification rules as people give them, and their problems. Pure."""

import secrets
from collections.abc import Iterator, Sequence
from typing import Annotated, Final, Literal
from zoneinfo import ZoneInfo

import msgspec
from msgspec import Meta, Struct

from query.parse import parse
from query.person import NO_PERSON, words_of
from query.tree import ISSUE_FIELDS, Compare, Filter, Has, Is, Query, Text, leaves
from schemas.errors import Detail, QueryError
from schemas.notifications import CAUSES, MOST_PER_HOUR, CauseKind, NotificationRule

MAX_RULES: Final = 50
Clock = Annotated[str, Meta(pattern=r"^([01]\d|2[0-3]):[0-5]\d$", description="HH:MM")]
Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
Name = Annotated[str, Meta(min_length=1, max_length=100)]
ChannelName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
Recipient = Annotated[str, Meta(min_length=1, max_length=200)]
_KEYS: Final = ("type", "platform", "release", "environment", *ISSUE_FIELDS)
"""Keys that a rule's query may have, apart from `is` and comparisons of the issue's times and counts."""


class QuietHoursInput(Struct, frozen=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """See `schemas.notifications.QuietHours`."""

    start: Clock
    end: Clock
    zone: Annotated[str, Meta(max_length=64, description="a time zone such as Europe/Berlin")] = "UTC"
    days: Annotated[tuple[Day, ...], Meta(max_length=6)] = ()


class NotificationRuleInput(
    Struct, frozen=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True
):
    """See `schemas.notifications.NotificationRule`."""

    name: Name
    causes: Annotated[tuple[CauseKind, ...], Meta(min_length=1, max_length=len(CAUSES))]
    channels: Annotated[tuple[ChannelName, ...], Meta(min_length=1, max_length=10)]
    query: Annotated[str, Meta(max_length=4000)] = ""
    users: Annotated[int, Meta(ge=0, le=1_000_000_000)] = 0
    to: Annotated[tuple[Recipient, ...], Meta(max_length=50)] = ()
    digest_minutes: Annotated[int, Meta(ge=0, le=24 * 60)] = 0
    most_per_hour: Annotated[int, Meta(ge=0, le=1000, description="0: any number")] = MOST_PER_HOUR
    quiet: QuietHoursInput | None = None
    without_content: bool = False
    enabled: bool = True
    id: Annotated[str, Meta(pattern="^([0-9a-f]{16})?$", description="unset for a new rule")] = ""

    @property
    def rule(self) -> NotificationRule:
        """The rule as it is stored; a new one gets an id."""
        return msgspec.convert(
            msgspec.to_builtins(self) | {"id": self.id or secrets.token_hex(8)}, NotificationRule
        )


def problems(rules: Sequence[NotificationRuleInput]) -> list[Detail]:
    """The problems of rules, beyond their types."""
    if len(rules) > MAX_RULES:
        return [Detail("rules", f"at most {MAX_RULES} rules")]
    return [problem for number in range(len(rules)) for problem in _problems(rules, number)]


def _problems(rules: Sequence[NotificationRuleInput], number: int) -> Iterator[Detail]:
    rule, field = rules[number], f"rules[{number}]"
    if rule.id and any(rule.id == other.id for other in rules[:number]):
        yield Detail(f"{field}.id", "another rule has this id")
    try:
        refused = next(_refused(parse(rule.query)), "")
    except QueryError as error:
        refused = f"position {error.position}: expected {error.expected}"
    if refused:
        yield Detail(f"{field}.query", refused)
    if rule.quiet is not None and not _is_zone(rule.quiet.zone):
        yield Detail(f"{field}.quiet.zone", "not a time zone such as Europe/Berlin")


def _is_zone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (ValueError, OSError, LookupError):
        return False
    return True


def _refused(query: Query) -> Iterator[str]:
    """The problems of a query with conditions on facts that a cause doesn't have."""
    if words_of(query):
        yield NO_PERSON
    for leaf in leaves(query):
        match leaf:
            case Text():
                yield "causes carry no text to search: use keys such as type, release, is"
            case Filter(key, is_tag) | Has(key, is_tag) if is_tag or key not in _KEYS:
                yield f"causes don't know {key}, but {', '.join(_KEYS)}, is, firstSeen, lastSeen, events, users"
            case Compare("timestamp"):
                yield "a cause is sent when it happens: timestamp can't be compared"
            case Filter() | Has() | Compare() | Is():
                pass
