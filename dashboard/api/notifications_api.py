"""A project's notification rules, their test on past activity, and the undelivered messages."""

import asyncio
from collections.abc import Iterable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from broker.errors import KafkaError
from dashboard.api.operation import Call, NoInput, operation
from dashboard.auth.access import Role
from dashboard.dependencies import State
from dashboard.http.http_errors import HttpError, unavailable
from notify.notification_fold import Notifications, Outgoing, preview
from notify.rule_input import NotificationRuleInput, problems
from notify.rule_queue import RuleDecision
from schemas.errors import WireError
from schemas.notifications import Cause, NotificationRecord, NotificationRule
from schemas.times import DAY_MS, iso

DAYS: Final = 14
"""Past days that a test of rules covers."""
STORED_DAYS: Final = 30
"""Days for which the topic is stored."""
MAX_MESSAGES: Final = 500
_READ_SECONDS: Final = 10.0


class NotificationRules(Struct, frozen=True):
    """All notification rules of a project."""

    rules: list[NotificationRule]


class NotificationRulesInput(Struct, frozen=True, forbid_unknown_fields=True):
    """All notification rules of a project. A rule that keeps its `id` keeps its waiting messages."""

    rules: list[NotificationRuleInput]


class CauseView(Struct, frozen=True, rename="camel"):
    """A cause: something that happened to an issue.

    `value` is the release, the environment or the number that the cause is about.
    """

    id: str
    kind: str
    issue_id: str
    at: str
    value: str


class DecidedMessage(Struct, frozen=True, rename="camel"):
    """A message that a rule would have sent."""

    id: str
    rule_id: str
    at: str
    causes: list[CauseView]


class Preview(Struct, frozen=True, rename="camel"):
    """The messages that the rules would have sent since `start`: the newest ones first, and the total."""

    start: str
    total: int
    messages: list[DecidedMessage]


class UndeliveredMessage(Struct, frozen=True, rename="camel"):
    """A message that no channel has taken: `nextAt` is the next attempt, null once it was given up."""

    id: str
    rule_id: str
    rule_name: str
    channel: str
    decided_at: str
    attempts: int
    next_at: str | None
    error: str
    causes: list[CauseView]


class Undelivered(Struct, frozen=True, rename="camel"):
    """The names of the channels, and the undelivered messages of the last 30 days, newest first."""

    channels: list[str]
    messages: list[UndeliveredMessage]


@operation("GET", "/projects/{project}/notification-rules", Role.VIEWER)
async def _get(call: Call[NoInput, NoInput]) -> NotificationRules:
    """The notification rules."""
    return NotificationRules(list(call.project().notification_rules))


@operation("PUT", "/projects/{project}/notification-rules", Role.ADMIN)
async def _put(call: Call[NoInput, NotificationRulesInput]) -> NotificationRules:
    """Replace the notification rules; they apply to activity from now on."""
    rules = _read(call.body.rules)
    project = await call.edit(lambda old: replace(old, notification_rules=tuple(rules)))
    return NotificationRules(list(project.notification_rules))


@operation("POST", "/projects/{project}/notification-rules:preview", Role.ADMIN, is_trial=True)
async def _preview(call: Call[NoInput, NotificationRulesInput]) -> Preview:
    """Test these rules on the last 14 days: the messages that they would have sent; changes nothing."""
    project, rules = call.project().id, _read(call.body.rules)
    return preview_of(await read_log(call.state, DAYS), project, rules, call.state.dependencies.now_ms())


@operation("GET", "/projects/{project}/notifications", Role.VIEWER)
async def _undelivered(call: Call[NoInput, NoInput]) -> Undelivered:
    """Messages that could not be delivered, and the names of the channels."""
    project = call.project().id
    return undelivered_of(await read_log(call.state, STORED_DAYS), project)


def preview_of(
    records: Iterable[NotificationRecord], project: str, rules: list[NotificationRule], now_ms: int
) -> Preview:
    """The messages that rules would have sent in the last `DAYS`; `records` may begin earlier."""
    start = now_ms - DAYS * DAY_MS
    decisions = preview([record for record in records if record.at_ms >= start], project, rules, now_ms)
    newest = sorted(decisions, key=lambda one: one.at_ms, reverse=True)[:MAX_MESSAGES]
    return Preview(iso(start), len(decisions), list(map(_decided, newest)))


def undelivered_of(records: Iterable[NotificationRecord], project: str) -> Undelivered:
    """A project's undelivered messages, by the records of `STORED_DAYS`."""
    state = Notifications()
    for record in records:
        state.apply_record(record)
    messages = [*state.outgoing.values(), *state.given_up.values()]
    ours = [one for one in messages if one.project_id == project and one.attempts]
    newest = sorted(ours, key=lambda one: one.decision.at_ms, reverse=True)[:MAX_MESSAGES]
    return Undelivered(list(state.channels), list(map(_message, newest)))


def _read(inputs: list[NotificationRuleInput]) -> list[NotificationRule]:
    """Rules as they are stored. Raises HttpError with every fault."""
    if details := problems(inputs):
        raise HttpError(WireError.VALIDATION_FAILED, details)
    return [one.rule for one in inputs]


async def read_log(state: State, days: int) -> list[NotificationRecord]:
    """The records of the last days, in order. Raises HttpError where Kafka doesn't answer."""
    history = state.dependencies.notifications
    if history is None:
        raise unavailable("notifications can't be read here")
    try:
        async with asyncio.timeout(_READ_SECONDS):
            return await history(state.dependencies.now_ms() - days * DAY_MS)
    except (KafkaError, OSError, TimeoutError) as error:
        raise unavailable("the notifications can't be read: Kafka doesn't answer") from error


def _decided(decision: RuleDecision) -> DecidedMessage:
    return DecidedMessage(decision.id, decision.rule.id, iso(decision.at_ms), _causes(decision.causes))


def _message(message: Outgoing) -> UndeliveredMessage:
    decision = message.decision
    return UndeliveredMessage(
        id=decision.id,
        rule_id=decision.rule.id,
        rule_name=decision.rule.name,
        channel=message.channel,
        decided_at=iso(decision.at_ms),
        attempts=message.attempts,
        next_at=iso(message.next_ms) if message.next_ms else None,
        error=message.error,
        causes=[] if decision.is_test else _causes(decision.causes),
    )


def _causes(causes: Iterable[Cause]) -> list[CauseView]:
    return [CauseView(one.id, one.kind, one.issue, one.at, one.value) for one in causes]


OPERATIONS = (_get, _put, _preview, _undelivered)
