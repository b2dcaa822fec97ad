"""From an event to its fingerprint, in the order of precedence."""

from typing import TYPE_CHECKING

from grouping.fingerprint.custom import given, splice
from grouping.fingerprint.event_view import GroupingEvent
from grouping.fingerprint.in_app_rules import apply_in_app_rules
from grouping.fingerprint.key import Fingerprint, hash_parts
from grouping.fingerprint.mechanism import decide, deciding_site, locate
from grouping.fingerprint.stacks import ErrorLocation

if TYPE_CHECKING:
    from grouping.rules import CompiledRules, RuleOutcome
    from query.event_view import EventView


def fingerprint(
    event: GroupingEvent,
    rules: "CompiledRules | None" = None,
    *,
    view: "EventView | None" = None,
) -> Fingerprint:
    """The fingerprint of an event; never raises for events that the edge accepts.

    `rules` are asked with a `view`, the event as the query language sees it; without both none applies.
    """
    outcome = rules.apply(view) if rules and view is not None else None
    return grouped(event, outcome)


def grouped(
    event: GroupingEvent,
    outcome: "RuleOutcome | None",
    location: ErrorLocation | None = None,
) -> Fingerprint:
    """The fingerprint of an event, given the outcome of its project's rules.

    `location` is the result of `locate` for the event as the rules mark its frames, if known.
    """
    if outcome is not None and outcome.in_app_rules and location is None:
        event = apply_in_app_rules(event, outcome.in_app_rules)
    location = location or locate(event)
    rule, computed = decide(event, location)
    parts = computed
    if outcome is not None and outcome.fingerprint:
        rule = f"rule:{outcome.rule}"
        parts = splice(outcome.fingerprint, computed, deciding_site(location))
    elif elements := given(event.fingerprint):
        rule, parts = "client", splice(elements, computed)
    if outcome is not None and outcome.discard:
        return Fingerprint(hash_parts(parts), f"rule:{outcome.rule}", parts, discard=True)
    return Fingerprint(hash_parts(parts), rule, parts)
