"""A project's grouping rules, compiled to predicates over events.

A rule matches by the query language (contract, section 4) and sets a fingerprint, marks frames or drops the event. One
that doesn't parse, or fails on an event, disables itself with its error kept; the others go on.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from grouping.fingerprint.custom import given
from grouping.fingerprint.marks import FrameMark
from schemas.projects import GroupingRule
from storage.query.errors import QueryError
from storage.query.evaluate import matches
from storage.query.parse import parse
from storage.query.view import EventView


class Outcome(NamedTuple):
    """What the rules decided about one event: `rule` names the one that set the fingerprint or dropped the event."""

    rule: str = ""
    fingerprint: tuple[str, ...] = ()
    marks: tuple[FrameMark, ...] = ()
    discard: bool = False


UNTOUCHED = Outcome()

Predicate = Callable[[EventView], bool]


class CompiledRule(NamedTuple):
    """A rule that can be asked; `place` is its position among all rules of its project."""

    name: str
    predicate: Predicate
    fingerprint: tuple[str, ...]
    marks: tuple[FrameMark, ...]
    discard: bool
    place: int = 0


class CompiledRules:
    """Ordered rules ready to be asked about events; `errors` says by name which are disabled and why.

    True when there is a rule to ask: only then need the caller decode an event in full.
    """

    def __init__(self, rules: Iterable[CompiledRule], errors: dict[str, str]) -> None:
        self._rules = tuple(rules)
        self.errors = errors

    def __bool__(self) -> bool:
        return bool(self._rules)

    def apply(self, view: EventView) -> Outcome:
        """The outcome for one event."""
        return outcome_of(self.fitting(view))

    def fitting(self, view: EventView) -> list[CompiledRule]:
        """The rules that match one event, in their order, up to the first that drops it."""
        found = []
        for rule in self._rules:
            if self._fits(rule, view):
                found.append(rule)
                if rule.discard:
                    break
        return found

    def _fits(self, rule: CompiledRule, view: EventView) -> bool:
        try:
            return rule.predicate(view)
        except Exception as error:  # noqa: BLE001 - a project's own rule must never stop the processing of its events
            self.errors[rule.name] = f"failed on an event: {type(error).__name__}: {error}"
            self._rules = tuple([other for other in self._rules if other is not rule])
            return False


def outcome_of(fitting: Iterable[CompiledRule]) -> Outcome:
    """What rules that match do. The first that sets a fingerprint decides it; marks add up; a discard ends it."""
    name = ""
    fingerprint: tuple[str, ...] = ()
    marks: list[FrameMark] = []
    for rule in fitting:
        if rule.discard:
            return Outcome(rule.name, (), (), discard=True)
        marks.extend(rule.marks)
        if rule.fingerprint and not fingerprint:
            name, fingerprint = rule.name, rule.fingerprint
    return Outcome(name, fingerprint, tuple(marks)) if fingerprint or marks else UNTOUCHED


def compile_rules(rules: Iterable[GroupingRule]) -> CompiledRules:
    """The enabled rules, in their order; one whose query doesn't parse stands in `errors` instead."""
    compiled: list[CompiledRule] = []
    errors: dict[str, str] = {}
    for place, rule in enumerate(rules):
        if not rule.enabled:
            continue
        try:
            predicate = _predicate(rule.match)
        except QueryError as error:
            errors[rule.name] = error.message
            continue
        compiled.append(
            CompiledRule(rule.name, predicate, given(rule.fingerprint), _marks(rule), rule.discard, place)
        )
    return CompiledRules(compiled, errors)


def _predicate(text: str) -> Predicate:
    query = parse(text)
    # No clock: a time that is relative counts from the event itself, the same in every replay.
    return lambda view: matches(query, view, view.timestamp)


def _marks(rule: GroupingRule) -> tuple[FrameMark, ...]:
    marks: list[FrameMark] = []
    if rule.in_app:
        marks.append(FrameMark.of(rule.in_app, in_app=True))
    if rule.not_in_app:
        marks.append(FrameMark.of(rule.not_in_app, in_app=False))
    return tuple(marks)
