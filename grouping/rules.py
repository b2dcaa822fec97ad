"""A project's grouping rules, compiled to predicates over events.

A rule matches by the query language (contract, section 4) and sets a fingerprint, marks frames or drops the event. A rule that
doesn't parse is disabled, and its error recorded. A rule that fails on an event, or would cost too much, is skipped for that event
only: the outcome depends on the rules and the event, not on earlier events. Other rules still apply.
"""

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import NamedTuple

from msgspec import Struct

from grouping.cost import MAX_STEPS, asks_of_error_alone, characters, query_weight
from grouping.fingerprint.custom import Element, given
from grouping.fingerprint.event_view import GroupingEvent
from grouping.fingerprint.in_app_rules import InAppRule, InAppRules, frame_characters
from grouping.variables import Compiled, compiled, filled
from query.evaluate import predicate
from query.event_view import EventView
from query.parse import parse
from query.tree import Query
from schemas.errors import QueryError
from schemas.projects import GroupingRule


class RuleOutcome(NamedTuple):
    """The decision of the rules on an event; `rule` is the name of the rule that set the fingerprint or dropped the event."""

    rule: str = ""
    fingerprint: tuple[Element, ...] = ()
    in_app_rules: InAppRules = ()
    discard: bool = False


UNTOUCHED = RuleOutcome()
TOO_DEAR = "too many terms or patterns for an event of this size"

Predicate = Callable[[EventView], bool]


class CompiledRule(Struct, frozen=True, eq=False, gc=False):
    """A compiled rule, compared by identity; `position` is its position among all rules of its project.

    `weight` is what its query costs for each character of an event, `of_error` whether it depends on error and platform alone.
    """

    name: str
    predicate: Predicate
    fingerprint: tuple[Compiled, ...]
    in_app_rules: InAppRules
    discard: bool
    position: int = 0
    weight: int = 0
    of_error: bool = False

    @property
    def in_app_weight(self) -> int:
        """Steps of its patterns per character of a frame's names."""
        return sum(rule.weight for rule in self.in_app_rules)


class Answers(NamedTuple):
    """The matching rules of an event, and the skipped ones with the reason."""

    fitting: tuple[CompiledRule, ...] = ()
    skipped: tuple[tuple[CompiledRule, str], ...] = ()


NO_ANSWERS = Answers()


class CompiledRules:
    """Compiled rules in order; `errors` has the reason of each disabled rule by name.

    True when there is a rule to ask: only then need the caller decode an event in full.
    """

    def __init__(self, rules: Iterable[CompiledRule], errors: dict[str, str]) -> None:
        self._rules = tuple(rules)
        self.errors = errors
        self.weight = sum(rule.weight + rule.in_app_weight for rule in self._rules)
        """Maximum steps of all rules per byte of an event."""
        self.of_error = tuple([rule for rule in self._rules if rule.of_error])
        self.of_event = tuple([rule for rule in self._rules if not rule.of_error])

    def __bool__(self) -> bool:
        return bool(self._rules)

    def apply(self, view: EventView, event: GroupingEvent | None = None) -> RuleOutcome:
        """The outcome for one event; `event` has its frames."""
        return outcome_of(self.ask(view, event).fitting, lambda: view)

    def ask(self, view: EventView, event: GroupingEvent | None = None) -> Answers:
        """The results of the rules on an event, in their order; a rule that would exceed the remaining steps is skipped."""
        left, size = MAX_STEPS, characters(view)
        names = 0 if event is None else frame_characters(event)
        affordable: list[CompiledRule] = []
        dear: list[CompiledRule] = []
        for rule in self._rules:
            cost = rule.weight * size + rule.in_app_weight * names
            (affordable if cost <= left else dear).append(rule)
            left -= cost if cost <= left else 0
        answers = ask(affordable, view)
        return answers._replace(skipped=(*answers.skipped, *[(rule, TOO_DEAR) for rule in dear]))


def merged(some: Answers, others: Answers) -> Answers:
    """Merged answers of rules of one project, in the order of the rules."""
    if others is NO_ANSWERS or some is NO_ANSWERS:
        return some if others is NO_ANSWERS else others
    fitting = sorted((*some.fitting, *others.fitting), key=lambda rule: rule.position)
    return Answers(tuple(fitting), (*some.skipped, *others.skipped))


def ask(rules: Iterable[CompiledRule], view: EventView) -> Answers:
    """The results of rules on an event, regardless of cost."""
    fitting: list[CompiledRule] = []
    skipped: list[tuple[CompiledRule, str]] = []
    for rule in rules:
        try:
            if rule.predicate(view):
                fitting.append(rule)
        except Exception as error:  # noqa: BLE001 - a project's own rule must never stop the processing of its events
            skipped.append((rule, f"failed on an event: {type(error).__name__}: {error}"))
    return Answers(tuple(fitting), tuple(skipped)) if fitting or skipped else NO_ANSWERS


def until_discard(fitting: Iterable[CompiledRule]) -> list[CompiledRule]:
    """Matching rules, up to the first that drops the event."""
    found = []
    for rule in fitting:
        found.append(rule)
        if rule.discard:
            break
    return found


def outcome_of(fitting: tuple[CompiledRule, ...], view: Callable[[], EventView]) -> RuleOutcome:
    """The outcome of matching rules; `view` is called if a fingerprint uses values of the event."""
    decides, outcome = _outcome_of(fitting)
    return outcome if decides is None else outcome._replace(fingerprint=filled(decides.fingerprint, view))


# Few combinations of matching rules occur, and each occurs often.
@lru_cache(maxsize=1024)
def _outcome_of(fitting: tuple[CompiledRule, ...]) -> tuple[CompiledRule | None, RuleOutcome]:
    """The outcome, and the rule whose fingerprint still needs the event's values.

    The first that sets a fingerprint decides it; marks add up; a discard ends it.
    """
    decides: CompiledRule | None = None
    in_app_rules: list[InAppRule] = []
    for rule in fitting:
        if rule.discard:
            return None, RuleOutcome(rule.name, (), (), discard=True)
        in_app_rules.extend(rule.in_app_rules)
        if rule.fingerprint and decides is None:
            decides = rule
    if decides is None:
        return None, RuleOutcome(in_app_rules=tuple(in_app_rules)) if in_app_rules else UNTOUCHED
    fingerprint = tuple([element for element in decides.fingerprint if isinstance(element, str)])
    outcome = RuleOutcome(decides.name, fingerprint, tuple(in_app_rules))
    return None if len(fingerprint) == len(decides.fingerprint) else decides, outcome


def compile_rules(rules: Iterable[GroupingRule]) -> CompiledRules:
    """The enabled rules, in their order; a rule whose query doesn't parse is in `errors` instead."""
    ready: list[CompiledRule] = []
    errors: dict[str, str] = {}
    for position, rule in enumerate(rules):
        if not rule.enabled:
            continue
        try:
            ready.append(_compiled(rule, position))
        except QueryError as error:
            errors[rule.name] = error.message
    return CompiledRules(ready, errors)


def _compiled(rule: GroupingRule, position: int) -> CompiledRule:
    query = parse(rule.match)
    return CompiledRule(
        rule.name,
        _predicate(query),
        tuple([compiled(element) for element in given(rule.fingerprint)]),
        _marks(rule),
        rule.discard,
        position,
        query_weight(query),
        asks_of_error_alone(query),
    )


def _predicate(query: Query) -> Predicate:
    fits = predicate(query)
    # No clock: relative times count from the event itself, so that replays are deterministic.
    return lambda view: fits(view, view.timestamp)


def _marks(rule: GroupingRule) -> InAppRules:
    in_app_rules: list[InAppRule] = []
    if rule.in_app:
        in_app_rules.append(InAppRule(rule.in_app, in_app=True))
    if rule.not_in_app:
        in_app_rules.append(InAppRule(rule.not_in_app, in_app=False))
    return tuple(in_app_rules)
