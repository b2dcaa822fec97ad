"""The fingerprint that a rule gives all its events is known before the first of them."""

import pytest

from grouping.fingerprint import GroupingEvent, fingerprint
from grouping.fingerprint.event_view import GroupingError
from grouping.rules import compile_rules, fixed_fingerprint
from query.event_view import from_json
from schemas.projects import GroupingRule


@pytest.mark.parametrize("elements", [("one",), ("one", "two {x}"), ("{{ unknown }}",)])
def test_it_is_that_of_every_event(elements: tuple[str, ...]) -> None:
    rule = GroupingRule("together", "type:E", fingerprint=elements)
    event = GroupingEvent(platform="python", error=GroupingError(type="E", message="m 1"))
    view = from_json(b'{"error":{"type":"E","message":"m 1"}}', "sdk/1", 0)
    found = fingerprint(event, compile_rules([rule]), view=view)
    assert found.rule == "rule:together"
    assert fixed_fingerprint(rule) == found.hash


@pytest.mark.parametrize(
    "rule",
    [
        GroupingRule("r", "type:E"),
        GroupingRule("r", "type:E", fingerprint=(" ",)),
        GroupingRule("r", "type:E", fingerprint=("{{ default }}", "x")),
        GroupingRule("r", "type:E", fingerprint=("tenant {{ tags[tenant] }}",)),
        GroupingRule("r", "type:E", fingerprint=("one",), discard=True),
    ],
    ids=["none", "blank", "default", "a variable", "dropped"],
)
def test_a_rule_that_leaves_it_to_the_event_has_none(rule: GroupingRule) -> None:
    assert fixed_fingerprint(rule) is None
