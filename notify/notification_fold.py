"""The fold of the records of `notifications`, read in order. Pure.

It has the decisions, the outgoing messages and the next offsets. Live and in a preview the same records
lead to the same decisions: this is the only place that decides.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from notify.rule_queue import RuleDecision, RuleQueue, channel_test
from schemas.notifications import (
    Cause,
    CauseRecord,
    ChannelsRecord,
    ChannelTestRecord,
    DeliveryRecord,
    NotificationRecord,
    NotificationRule,
    PositionRecord,
    RulesRecord,
    TimeRecord,
)
from schemas.times import DAY_MS

REMEMBERED_MS: Final = 40 * DAY_MS
"""How long the id of a cause is remembered: longer than `issue-activity` is stored, so that a repeat is recognised."""

REPEATED_MS: Final = DAY_MS
"""How often rules and channels are written again: the log is stored for a month, and without rules its causes
decide nothing."""


class Outgoing(Struct, frozen=True):
    """A message that has not been delivered; `id` names it in the log."""

    decision: RuleDecision
    channel: str
    attempts: int = 0
    next_ms: int = 0
    error: str = ""

    @property
    def project_id(self) -> str:
        return self.decision.causes[0].project_id

    @property
    def id(self) -> str:
        return f"{self.decision.rule.id}/{self.channel}/{self.decision.id}"


class Notifications:
    """The state after some records."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.next_offsets: dict[int, int] = {}
        self.rules: dict[str, tuple[NotificationRule, ...]] = {}
        self._rules_ms: dict[str, int] = {}
        self.channels: tuple[str, ...] = ()
        self._channels_ms = 0
        self.outgoing: dict[str, Outgoing] = {}
        self.given_up: dict[str, Outgoing] = {}
        self._states: dict[tuple[str, str], RuleQueue] = {}
        self._known: dict[str, int] = {}

    @property
    def due_ms(self) -> int | None:
        """When waiting causes are to be sent next: a `TimeRecord` of then sends them."""
        return min(
            (due for state in self._states.values() if (due := state.due_ms) is not None), default=None
        )

    def apply_record(self, record: NotificationRecord) -> list[RuleDecision]:
        """The decisions that a record leads to; its messages are `outgoing`. Clocks that go back are not followed."""
        self.now_ms = max(self.now_ms, record.at_ms)
        decisions = list(self._time())
        match record:
            case CauseRecord(_, cause, partition, offset):
                self.next_offsets[partition] = max(self.next_offsets.get(partition, 0), offset + 1)
                decisions += self._cause(cause)
            case PositionRecord(_, next_offsets):
                for partition, offset in next_offsets.items():
                    self.next_offsets[partition] = max(self.next_offsets.get(partition, 0), offset)
            case RulesRecord(_, project, rules):
                self._change(project, rules)
            case ChannelsRecord(_, names):
                self.channels, self._channels_ms = names, self.now_ms
            case DeliveryRecord():
                self._deliver(record)
            case ChannelTestRecord():
                decisions += [] if self._is_repeat(f"test-{record.id}") else [channel_test(record)]
            case TimeRecord():
                pass
        for decision in decisions:
            for channel in decision.rule.channels:
                message = Outgoing(decision, channel)
                self.outgoing[message.id] = message
        return decisions

    def _time(self) -> Iterator[RuleDecision]:
        """The decisions due by now, in the order in which they became due."""
        due = [(state.due_ms, key) for key, state in self._states.items() if state.due_ms is not None]
        for _, key in sorted(due):
            yield from self._states[key].time(self.now_ms)

    def _is_repeat(self, name: str) -> bool:
        """Whether this id was seen; from now on it is."""
        if name in self._known:
            return True
        self._known[name] = self.now_ms
        while self._known and next(iter(self._known.values())) < self.now_ms - REMEMBERED_MS:
            del self._known[next(iter(self._known))]
        return False

    def _cause(self, cause: Cause) -> Iterator[RuleDecision]:
        if self._is_repeat(cause.id):
            return
        for rule in self.rules.get(cause.project_id, ()):
            yield from self._states[cause.project_id, rule.id].cause(cause, self.now_ms)

    def _change(self, project: str, rules: tuple[NotificationRule, ...]) -> None:
        for rule in self.rules.get(project, ()):
            if all(rule.id != other.id for other in rules):
                del self._states[project, rule.id]
        for rule in rules:
            state = self._states.setdefault((project, rule.id), RuleQueue(rule))
            state.change(rule)
        self.rules[project] = rules
        self._rules_ms[project] = self.now_ms

    def missing(
        self, rules: Mapping[str, tuple[NotificationRule, ...]], channels: tuple[str, ...], now_ms: int
    ) -> list[RulesRecord | ChannelsRecord]:
        """The records of these rules by project, and of these channels, that the log lacks.

        The log lacks a record if its own record differs or is a day old.
        """
        old_ms = now_ms - REPEATED_MS
        found: list[RulesRecord | ChannelsRecord] = []
        if channels != self.channels or (channels and self._channels_ms <= old_ms):
            found.append(ChannelsRecord(now_ms, channels))
        for project in sorted(rules.keys() | self.rules.keys()):
            wanted = rules.get(project, ())
            if wanted != self.rules.get(project, ()) or (wanted and self._rules_ms[project] <= old_ms):
                found.append(RulesRecord(now_ms, project, wanted))
        return found

    def _deliver(self, record: DeliveryRecord) -> None:
        message = self.outgoing.get(record.message)
        if message is None:
            return
        message = replace(message, attempts=record.attempts, next_ms=record.next_ms, error=record.error)
        if record.delivered or not record.next_ms:
            del self.outgoing[message.id]
            if not record.delivered:
                self.given_up[message.id] = message
        else:
            self.outgoing[message.id] = message


def preview(
    records: Iterable[NotificationRecord], project: str, rules: Sequence[NotificationRule], now_ms: int
) -> list[RuleDecision]:
    """The decisions by now, in order, as if a project had had these rules from the beginning of the records."""
    state = Notifications()
    decisions = state.apply_record(RulesRecord(0, project, tuple(rules)))
    for record in records:
        if isinstance(record, CauseRecord) and record.cause.project_id == project:
            decisions += state.apply_record(record)
        else:
            decisions += state.apply_record(TimeRecord(record.at_ms))
    return decisions + state.apply_record(TimeRecord(now_ms))
