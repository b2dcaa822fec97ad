"""From an event to its fingerprint, in the order of precedence."""

from processors.fingerprint.custom import given, splice
from processors.fingerprint.forms import GroupingEvent
from processors.fingerprint.key import Fingerprint, hash_parts
from processors.fingerprint.versions import CURRENT_VERSION, VERSIONS
from processors.rules import CompiledRules, Outcome


def fingerprint(
    event: GroupingEvent,
    rules: CompiledRules | None = None,
    *,
    view: object = None,
    version: str = CURRENT_VERSION,
) -> Fingerprint:
    """The fingerprint of an event; never raises on anything the edge admits.

    `rules` are asked only with a `view`: the event as the query language sees it.
    """
    outcome = rules.apply(view) if rules is not None and view is not None else Outcome()
    rule, computed = VERSIONS[version].decide(event)
    parts = computed
    elements = outcome.fingerprint
    if elements:
        rule, parts = f"rule:{outcome.rule}", splice(elements, computed)
    elif elements := given(event.fingerprint):
        rule, parts = "client", splice(elements, computed)
    return Fingerprint(version, hash_parts(version, parts), rule, parts, outcome.discard)


def culprit(event: GroupingEvent) -> str:
    """Where the error is, for people: `function in file` of the deciding frame, empty without one."""
    return VERSIONS[CURRENT_VERSION].culprit(event)
