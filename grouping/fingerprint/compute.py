"""From an event to its fingerprint, in the order of precedence."""

from typing import TYPE_CHECKING

from grouping.fingerprint.custom import given, needs_site, splice
from grouping.fingerprint.event_view import GroupingEvent
from grouping.fingerprint.frames import Site
from grouping.fingerprint.in_app_rules import apply_in_app_rules
from grouping.fingerprint.key import Fingerprint, hash_parts
from grouping.fingerprint.stacks import ErrorLocation
from grouping.fingerprint.versions import CURRENT_VERSION, VERSIONS

if TYPE_CHECKING:
    from grouping.rules import CompiledRules, RuleOutcome
    from query.event_view import EventView


def fingerprint(
    event: GroupingEvent,
    rules: "CompiledRules | None" = None,
    *,
    view: "EventView | None" = None,
    version: str = CURRENT_VERSION,
    location: ErrorLocation | None = None,
) -> Fingerprint:
    """The fingerprint of an event; never raises for events that the edge accepts.

    `rules` are asked with a `view`, the event as the query language sees it; without both none applies. `location` is what `locate`
    says of the event as the rules mark it, if known already.
    """
    outcome = rules.apply(view, event) if rules and view is not None else None
    return grouped(event, outcome, version=version, location=location)


def grouped(
    event: GroupingEvent,
    outcome: "RuleOutcome | None",
    *,
    version: str = CURRENT_VERSION,
    location: ErrorLocation | None = None,
) -> Fingerprint:
    """The fingerprint of an event, given the outcome of its project's rules; `location` as for `fingerprint`."""
    if outcome is not None and outcome.in_app_rules and location is None:
        event = apply_in_app_rules(event, outcome.in_app_rules)
    rule, computed = VERSIONS[version].decide(event, location)
    parts = computed
    if outcome is not None and outcome.fingerprint:
        site = _site(location or VERSIONS[version].locate(event)) if needs_site(outcome.fingerprint) else None
        rule, parts = f"rule:{outcome.rule}", splice(outcome.fingerprint, computed, site)
    elif elements := given(event.fingerprint):
        rule, parts = "client", splice(elements, computed)
    if outcome is not None and outcome.discard:
        return Fingerprint(version, hash_parts(version, parts), f"rule:{outcome.rule}", parts, discard=True)
    return Fingerprint(version, hash_parts(version, parts), rule, parts)


def _site(location: ErrorLocation) -> Site | None:
    """The deciding frame, cleaned; None if there is none."""
    index, error_sites = location
    return None if index is None else error_sites[index].sites[0]


def culprit(
    event: GroupingEvent, location: ErrorLocation | None = None, *, version: str = CURRENT_VERSION
) -> str:
    """The error's site for people: `function in file` of the deciding frame, or empty."""
    return VERSIONS[version].culprit(event, location)


def locate(event: GroupingEvent, *, version: str = CURRENT_VERSION) -> ErrorLocation:
    """The error's location by the stacks; depends on platform, error types and stacks alone."""
    return VERSIONS[version].locate(event)
