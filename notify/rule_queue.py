"""The messages of one rule and their times: a function of its causes and of time. Pure.

| the rule has | a cause that it chooses |
| ------------ | ----------------------- |
| none of these | is sent immediately |
| a digest | waits until the digest of the first waiting one ends |
| quiet hours | waits until they end |
| a most per hour | waits until an earlier message is an hour old |

All waiting causes are sent in one message.
"""

import hashlib
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from notify.matching import chooses
from notify.quiet_hours import after_quiet
from schemas.issues import Subject
from schemas.notifications import Cause, ChannelTestRecord, NotificationRule
from schemas.times import HOUR_MS, MINUTE_MS, iso

_TEST_RULE: Final = "test"


class RuleDecision(Struct, frozen=True):
    """Causes that a rule sends together, and when it was decided (Unix ms)."""

    rule: NotificationRule
    causes: tuple[Cause, ...]
    at_ms: int

    @property
    def id(self) -> str:
        """The id of the cause; of several, one made of theirs."""
        if len(self.causes) == 1:
            return self.causes[0].id
        names = "\n".join(cause.id for cause in self.causes)
        return f"digest-{hashlib.sha256(names.encode()).hexdigest()[:32]}"

    @property
    def is_test(self) -> bool:
        """Whether it is that of `channel_test`."""
        return self.rule.id == _TEST_RULE


def channel_test(record: ChannelTestRecord) -> RuleDecision:
    """A decision that tests a channel: in the form of all others, about an issue that doesn't exist."""
    subject = Subject(error_type="TestMessage", events=1, users=1)
    cause = Cause(f"test-{record.id}", record.project_id, "0" * 16, "created", iso(record.at_ms), subject)
    rule = NotificationRule(_TEST_RULE, "Test message", ("created",), (record.channel,), to=record.to)
    return RuleDecision(rule, (cause,), record.at_ms)


class RuleQueue:
    """The causes of a rule that wait, and the times of its last messages.

    Times are given in order, and never go back.
    """

    def __init__(self, rule: NotificationRule) -> None:
        self.rule = rule
        self._waiting: list[Cause] = []
        self._since = 0
        self._sent: list[int] = []

    def change(self, rule: NotificationRule) -> None:
        """Go on with other settings; a disabled rule drops its waiting causes."""
        self.rule = rule
        if not rule.enabled:
            self._waiting = []

    @property
    def due_ms(self) -> int | None:
        """When the waiting causes are sent; None without any."""
        if not self._waiting:
            return None
        due = after_quiet(self._since + self.rule.digest_minutes * MINUTE_MS, self.rule.quiet)
        most = self.rule.most_per_hour
        if most and len(self._sent) >= most:
            due = max(due, after_quiet(self._sent[-most] + HOUR_MS, self.rule.quiet))
        return due

    def cause(self, cause: Cause, now_ms: int) -> Iterator[RuleDecision]:
        """Add a cause; returns the decisions due by now."""
        yield from self.time(now_ms)
        if chooses(self.rule, cause):
            if not self._waiting:
                self._since = now_ms
            self._waiting.append(cause)
            yield from self.time(now_ms)

    def time(self, now_ms: int) -> Iterator[RuleDecision]:
        """Advance the clock; returns the decisions due by now."""
        due = self.due_ms
        if due is not None and due <= now_ms:
            decision = RuleDecision(self.rule, tuple(self._waiting), due)
            self._waiting = []
            self._sent = [*self._sent, due][-max(1, self.rule.most_per_hour) :]
            yield decision
