"""A project's grouping rules, compiled to predicates over events.

A rule matches by the query language (contract, section 4) and sets a fingerprint, marks frames or drops the
event. A rule that doesn't parse is disabled, and its error recorded. A rule that fails on an event, or would
take more steps than are left (`grouping.steps`), is skipped for that event only. Other rules still apply.
"""

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import NamedTuple

from msgspec import Struct

from grouping.fingerprint.custom import Element, given, is_default, splice
from grouping.fingerprint.in_app_rules import InAppRule, InAppRules
from grouping.fingerprint.key import hash_parts
from grouping.steps import MAX_STEPS, EventSize, Searches, searches_of, size_of, total
from grouping.variables import Compiled, compiled, filled
from query.evaluate import predicate
from query.event_view import EventView
from query.parse import parse
from query.tree import Filter, Has, Leaf, Query, Text, leaves
from schemas.errors import QueryError
from schemas.projects import GroupingRule, OwnerRule


class RuleOutcome(NamedTuple):
    """The decision of the rules on an event.

    `rule` is the name of the rule that set the fingerprint or dropped the event.
    """

    rule: str = ""
    fingerprint: tuple[Element, ...] = ()
    in_app_rules: InAppRules = ()
    discard: bool = False


UNTOUCHED = RuleOutcome()
TOO_EXPENSIVE = "too many terms or patterns for an event of this size"

Predicate = Callable[[EventView], bool]


class CompiledRule(Struct, frozen=True, eq=False, gc=False):
    """A compiled rule, compared by identity; `position` is its position among all rules of its project.

    `searches` are those of its query and its patterns. `of_error` is whether its query depends on error and
    platform alone.
    """

    name: str
    predicate: Predicate
    fingerprint: tuple[Compiled, ...]
    in_app_rules: InAppRules
    discard: bool
    position: int = 0
    searches: Searches = Searches()
    of_error: bool = False


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
        self.of_error = tuple([rule for rule in self._rules if rule.of_error])
        self.of_event = tuple([rule for rule in self._rules if not rule.of_error])
        self.searches_of_error = total([rule.searches for rule in self.of_error])
        self.searches_of_event = total([rule.searches for rule in self.of_event])

    def __bool__(self) -> bool:
        return bool(self._rules)

    def apply(self, view: EventView) -> RuleOutcome:
        """The outcome for one event."""
        return outcome_of(self.ask(view).fitting, lambda: view)

    def ask(self, view: EventView) -> Answers:
        """The results of the rules on an event that is alone in its record."""
        return self.ask_within(MAX_STEPS, size_of(view), view)[0]

    def ask_within(self, left: int, size: EventSize, view: EventView) -> tuple[Answers, int]:
        """The results of the rules on an event, in order, and the steps; a rule that would exceed `left` is skipped."""
        affordable, dear, spent = self.affordable(left, size)
        answers = ask(affordable, view)
        return answers._replace(skipped=(*answers.skipped, *dear)), spent

    def affordable(
        self, left: int, size: EventSize
    ) -> tuple[list[CompiledRule], list[tuple[CompiledRule, str]], int]:
        """The rules that `left` steps suffice for, the others with the reason, and the steps spent."""
        affordable: list[CompiledRule] = []
        dear: list[tuple[CompiledRule, str]] = []
        spent = 0
        for rule in self._rules:
            steps = rule.searches.steps(size)
            if spent + steps <= left:
                affordable.append(rule)
                spent += steps
            else:
                dear.append((rule, TOO_EXPENSIVE))
        return affordable, dear, spent


def fixed_fingerprint(rule: GroupingRule) -> int | None:
    """The fingerprint of all events that a rule groups; None where it depends on the event, or the rule sets none."""
    elements = tuple(map(compiled, given(rule.fingerprint)))
    texts = [element for element in elements if isinstance(element, str) and not is_default(element)]
    if rule.discard or not elements or len(texts) < len(elements):
        return None
    return hash_parts(splice(tuple(texts), ()))


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


def compile_owners(owners: Iterable[OwnerRule]) -> CompiledRules:
    """Owner rules, under the names by which skipped and ignored ones are reported, at the positions of the owners."""
    return compile_rules(GroupingRule(f"owner {owner.assignee}", owner.match) for owner in owners)


def _compiled(rule: GroupingRule, position: int) -> CompiledRule:
    query, marks = parse(rule.match), _marks(rule)
    of_marks = Searches(names=sum(mark.searches for mark in marks))
    return CompiledRule(
        rule.name,
        _predicate(query),
        tuple([compiled(element) for element in given(rule.fingerprint)]),
        marks,
        rule.discard,
        position,
        total([searches_of(query), of_marks]),
        all(map(_asks_of_error, leaves(query))),
    )


def _asks_of_error(leaf: Leaf) -> bool:
    """Whether the result depends on platform and error alone."""
    if isinstance(leaf, Filter | Has):
        return not leaf.is_tag and leaf.key in {"type", "message", "file", "function", "platform"}
    return isinstance(leaf, Text)


def _predicate(query: Query) -> Predicate:
    fits = predicate(query)
    # No clock: relative times count from the event itself, so that replays are deterministic.
    return lambda view: fits(view, view.timestamp)


def _marks(rule: GroupingRule) -> InAppRules:
    marks = ((rule.in_app, True), (rule.not_in_app, False))
    return tuple([InAppRule(globs, in_app) for globs, in_app in marks if globs])
