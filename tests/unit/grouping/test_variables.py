"""Variables of a rule's fingerprint are the event's own values, and nothing that an event holds is taken for one."""

import json
from typing import Any

import pytest

from grouping.fingerprint import fingerprint
from grouping.rules import compile_rules
from query.event_view import from_json
from schemas.projects import GroupingRule
from tests.unit.grouping.fingerprint.events import decode, event, frame


def sent(**fields: Any) -> dict[str, Any]:
    made = event("TypeError", "Order 665147 not found", [frame("pay", "src/pay.js")])
    device = {"os": "web", "osVersion": "1"}
    return (
        made
        | {"environment": "prod", "release": "2.1", "device": device, "tags": {"tenant": "acme"}}
        | fields
    )


def parts(given: dict[str, Any], *elements: str) -> tuple[str, ...]:
    raw = json.dumps(given).encode()
    rules = compile_rules([GroupingRule("r", "", fingerprint=elements)])
    return fingerprint(decode(raw), rules, view=from_json(raw, "js/1", 0)).parts


@pytest.mark.parametrize(
    ("element", "value"),
    [
        ("{{ type }}", "TypeError"),
        ("{{ message }}", "Order <*> not found"),
        ("{{ function }}", "pay"),
        ("{{ file }}", "pay.js"),
        ("{{ environment }}", "prod"),
        ("{{ release }}", "2.1"),
        ("{{ platform }}", "javascript"),
        ("{{ os }}", "web"),
        ("{{ tags[tenant] }}", "acme"),
        ('{{tags["tenant"]}}', "acme"),
        ("{{ tags.tenant }}", "acme"),
        ("of {{ tags.tenant }} in {{ file }}!", "of acme in pay.js!"),
        ("{{ tags[region] }}", "<none>"),
    ],
)
def test_a_variable_is_the_events_value(element: str, value: str) -> None:
    assert parts(sent(), element) == (f"given {value}",)


@pytest.mark.parametrize("value", ["{{ default }}", "{{ function }}", "{{ tags[tenant] }}"])
def test_a_value_that_looks_like_a_variable_is_text(value: str) -> None:
    assert parts(sent(tags={"tenant": value}), "{{ tags[tenant] }}") == (f"given {value}",)


def test_where_nothing_decides_there_is_no_function_and_no_file() -> None:
    assert parts(
        sent() | {"error": {"type": "E", "message": "", "stack": []}}, "{{ function }} {{ file }}"
    ) == ("given <none> <none>",)


def test_the_frame_is_the_one_that_the_rules_marks_decide() -> None:
    given = event(stack=[frame("retry", "src/retry.js"), frame("pay", "src/pay.js")])
    raw = json.dumps(given).encode()
    rules = compile_rules([GroupingRule("r", "", fingerprint=("{{ function }}",), not_in_app=("*retry*",))])
    assert fingerprint(decode(raw), rules, view=from_json(raw, "js/1", 0)).parts == ("given pay",)


@pytest.mark.parametrize(
    "element", ["{{ tenant }}", "{{ user }}", "a {{ default }}", "{{ tags[tenant]", "{{}}"]
)
def test_an_unknown_variable_stays_as_it_is_written(element: str) -> None:
    """Rules were saved with such before they were refused: their issues stay."""
    assert parts(sent(), element) == (f"given {element}",)


def test_a_clients_list_knows_the_default_alone() -> None:
    raw = json.dumps(sent(fingerprint=["{{ default }}", "{{ tags[tenant] }}"])).encode()
    assert fingerprint(decode(raw)).parts[-1] == "given {{ tags[tenant] }}"
