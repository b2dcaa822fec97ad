"""Rules tried on past events: which they match, and into which issues those would fall. The clock is the caller's."""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

import msgspec

from grouping.fingerprint import Fingerprint, GroupingEvent, grouped
from grouping.rules import Answers, compile_rules, outcome_of, until_discard
from query.event_view import EventView, from_json
from schemas.errors import Unreadable
from schemas.projects import GroupingRule

_SHOWN_CHARACTERS = 200


class PastEvent(NamedTuple):
    """An event as it was sent, and where it is now; `received_ms` is Unix ms."""

    event: bytes
    issue: int
    fingerprint: int
    sdk: str
    received_ms: int


class Regrouped(NamedTuple):
    """A past event under the tried rules; `fitting` are the places of those that match it, `skipped` of those not asked."""

    past: PastEvent
    id: str
    type: str
    message: str
    found: Fingerprint
    fitting: tuple[int, ...]
    skipped: tuple[int, ...] = ()


class Trial(NamedTuple):
    """What was found: `unreadable` events are passed over, `errors` says by name why rules were skipped, `whole` that no event was left out."""

    events: list[Regrouped]
    unreadable: int
    errors: dict[str, str]
    whole: bool


class Move(NamedTuple):
    """Events that would go the same way: `one` of them, how many, and their issue then, None where they would be dropped."""

    one: Regrouped
    events: int
    issue: int | None

    @property
    def is_felt(self) -> bool:
        """Whether a rule matches them, or they would not stay where they are."""
        return bool(self.one.fitting) or self.issue != self.one.past.issue


class _IdentifiedEvent(GroupingEvent, gc=False, kw_only=True):
    id: str = ""


_decode = msgspec.json.Decoder(_IdentifiedEvent).decode


def regroup(
    rules: Iterable[GroupingRule],
    events: Sequence[PastEvent],
    discarded: Collection[int] = (),
    in_time: Callable[[], bool] = lambda: True,
) -> Trial:
    """Group events by rules, as processing would; `discarded` fingerprints are dropped. Ends early once `in_time` says no."""
    compiled = compile_rules(rules)
    errors = dict(compiled.errors)
    regrouped: list[Regrouped] = []
    unreadable = 0
    for past in events:
        if not in_time():
            return Trial(regrouped, unreadable, errors, whole=False)
        try:
            event, view = _decode(past.event), from_json(past.event, past.sdk, past.received_ms)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, Unreadable):
            unreadable += 1
            continue
        answers = compiled.ask(view, event)
        for rule, reason in answers.skipped:
            errors.setdefault(rule.name, reason)
        regrouped.append(_regrouped(past, event, view, answers, discarded))
    return Trial(regrouped, unreadable, errors, whole=True)


def _regrouped(
    past: PastEvent, event: _IdentifiedEvent, view: EventView, answers: Answers, discarded: Collection[int]
) -> Regrouped:
    found = grouped(event, outcome_of(answers.fitting, lambda: view))
    if found.hash in discarded:
        found = msgspec.structs.replace(found, discard=True)
    return Regrouped(
        past,
        event.id,
        (event.error.type or "")[:_SHOWN_CHARACTERS],
        (event.error.message or "")[:_SHOWN_CHARACTERS],
        found,
        tuple([rule.position for rule in until_discard(answers.fitting)]),
        tuple([rule.position for rule, _ in answers.skipped]),
    )


def moves(events: Iterable[Regrouped], issue_of: Callable[[int], int]) -> list[Move]:
    """The ways that events would go, the most travelled first; `issue_of` names the issue of a fingerprint.

    An event that keeps its fingerprint stays in its issue, also where that is another one's by a merge.
    """
    ways: dict[tuple[int, int | None, tuple[int, ...], tuple[int, ...]], Move] = {}
    for one in events:
        then = None if one.found.discard else one.found.hash
        key = (one.past.issue, then, one.fitting, one.skipped)
        known = ways.get(key)
        if known is not None:
            ways[key] = known._replace(events=known.events + 1)
        elif then is None:
            ways[key] = Move(one, 1, None)
        else:
            ways[key] = Move(one, 1, one.past.issue if then == one.past.fingerprint else issue_of(then))
    return sorted(ways.values(), key=lambda move: -move.events)
