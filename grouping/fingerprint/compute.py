"""From an event to its fingerprint, in the order of precedence."""

from typing import TYPE_CHECKING

from grouping.fingerprint.custom import given, needs_site, splice
from grouping.fingerprint.event_view import GroupingEvent
from grouping.fingerprint.frames import Site
from grouping.fingerprint.in_app_rules import apply_in_app_rules
from grouping.fingerprint.key import Fingerprint, hash_parts
from grouping.fingerprint.mechanism import decide, locate
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
    rule, computed = decide(event, location)
    parts = computed
    if outcome is not None and outcome.fingerprint:
        site = _site(location or locate(event)) if needs_site(outcome.fingerprint) else None
        rule, parts = f"rule:{outcome.rule}", splice(outcome.fingerprint, computed, site)
    elif elements := given(event.fingerprint):
        rule, parts = "client", splice(elements, computed)
    if outcome is not None and outcome.discard:
        return Fingerprint(hash_parts(parts), f"rule:{outcome.rule}", parts, discard=True)
    return Fingerprint(hash_parts(parts), rule, parts)


def _site(location: ErrorLocation) -> Site | None:
    """The deciding frame, cleaned; None if there is none."""
    index, error_sites = location
    return None if index is None else error_sites[index].sites[0]
