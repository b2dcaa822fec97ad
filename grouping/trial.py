"""A trial of rules on past events: the events they match, the resulting issues and the cost.

The caller provides clocks.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from grouping.fingerprint import Fingerprint, GroupingEvent, grouped
from grouping.fingerprint.event_view import IdentifiedEvent, decode_identified
from grouping.fingerprint.in_app_rules import apply_in_app_rules
from grouping.rules import Answers, CompiledRule, CompiledRules, ask, compile_rules, outcome_of, until_discard
from grouping.steps import MAX_STEPS, size_of
from query.event_view import EventView, from_json
from schemas.errors import Unreadable
from schemas.projects import GroupingRule

_SHOWN_CHARACTERS = 200


class PastEvent(NamedTuple):
    """An event as it was sent, and its current issue; `received_ms` is Unix ms."""

    event: bytes
    issue: int
    fingerprint: int
    sdk: str
    received_ms: int


class TrialEvent(NamedTuple):
    """A past event grouped by the tried rules.

    `fitting` are the positions of matching rules, `skipped` those of skipped ones.
    """

    past: PastEvent
    id: str
    type: str
    message: str
    found: Fingerprint
    fitting: tuple[int, ...]
    skipped: tuple[int, ...] = ()


class Trial(NamedTuple):
    """The result: `unreadable` events were ignored, `errors` has the reason of skipped rules by name.

    `whole` is whether all events were processed, `cpu_ns` the CPU time of each rule on all events, by its position.
    """

    events: list[TrialEvent]
    unreadable: int
    errors: dict[str, str]
    whole: bool
    cpu_ns: Mapping[int, int] = {}


class Move(NamedTuple):
    """Events with the same change of issue: an example (`event`), their number and their new issue.

    The new issue is None if the events would be dropped.
    """

    event: TrialEvent
    events: int
    issue: int | None

    @property
    def is_affected(self) -> bool:
        """Whether a rule matches them or their issue would change."""
        return bool(self.event.fitting) or self.issue != self.event.past.issue


def run_trial(
    rules: Iterable[GroupingRule],
    events: Sequence[PastEvent],
    discarded: Collection[int] = (),
    in_time: Callable[[], bool] = lambda: True,
    cpu_ns: Callable[[], int] = lambda: 0,
) -> Trial:
    """Group events by rules, as the grouper would; `discarded` fingerprints are dropped.

    Ends early once `in_time` returns False. `cpu_ns` is the CPU time of this thread.
    """
    compiled = compile_rules(rules)
    errors = dict(compiled.errors)
    tried: list[TrialEvent] = []
    spent = Counter[int]()
    unreadable = 0
    for past in events:
        if not in_time():
            return Trial(tried, unreadable, errors, whole=False, cpu_ns=spent)
        try:
            event, view = decode_identified(past.event), from_json(past.event, past.sdk, past.received_ms)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, Unreadable):
            unreadable += 1
            continue
        answers = _answers(compiled, event, view, cpu_ns, spent)
        for rule, reason in answers.skipped:
            errors.setdefault(rule.name, reason)
        tried.append(_tried(past, event, view, answers, discarded))
    return Trial(tried, unreadable, errors, whole=True, cpu_ns=spent)


def _answers(
    compiled: CompiledRules,
    event: GroupingEvent,
    view: EventView,
    cpu_ns: Callable[[], int],
    spent: Counter[int],
) -> Answers:
    """The answers of `CompiledRules.ask`; adds the time of each rule to `spent`."""
    affordable, dear, _ = compiled.affordable(MAX_STEPS, size_of(view))
    fitting, skipped = list[CompiledRule](), list(dear)
    for rule in affordable:
        begun = cpu_ns()
        found = ask((rule,), view)
        if found.fitting:
            apply_in_app_rules(event, rule.in_app_rules)
        spent[rule.position] += cpu_ns() - begun
        fitting += found.fitting
        skipped += found.skipped
    return Answers(tuple(fitting), tuple(skipped))


def _tried(
    past: PastEvent,
    event: IdentifiedEvent,
    view: EventView,
    answers: Answers,
    discarded: Collection[int],
) -> TrialEvent:
    fingerprint = grouped(event, outcome_of(answers.fitting, lambda: view))
    if fingerprint.hash in discarded:
        fingerprint = msgspec.structs.replace(fingerprint, discard=True)
    return TrialEvent(
        past,
        event.id or "",
        (event.error.type or "")[:_SHOWN_CHARACTERS],
        (event.error.message or "")[:_SHOWN_CHARACTERS],
        fingerprint,
        tuple([rule.position for rule in until_discard(answers.fitting)]),
        tuple([rule.position for rule, _ in answers.skipped]),
    )


def moves(events: Iterable[TrialEvent], issue_of: Callable[[int], int]) -> list[Move]:
    """The changes of issue, the most frequent first; `issue_of` returns the issue of a fingerprint.

    An event that keeps its fingerprint stays in its issue, even if a merge put it there.
    """
    by_change: dict[tuple[int, int | None, tuple[int, ...], tuple[int, ...]], Move] = {}
    for event in events:
        new = None if event.found.discard else event.found.hash
        key = (event.past.issue, new, event.fitting, event.skipped)
        move = by_change.get(key)
        if move is not None:
            by_change[key] = move._replace(events=move.events + 1)
        elif new is None:
            by_change[key] = Move(event, 1, None)
        else:
            issue = event.past.issue if new == event.past.fingerprint else issue_of(new)
            by_change[key] = Move(event, 1, issue)
    return sorted(by_change.values(), key=lambda move: -move.events)
