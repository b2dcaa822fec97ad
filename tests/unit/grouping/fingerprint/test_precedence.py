"""Project rules > the client's fingerprint > stack > message."""

import json
from typing import Any

import pytest

from grouping.fingerprint import fingerprint
from grouping.fingerprint.event_view import decode_identified
from grouping.rules import CompiledRules, compile_rules
from query.event_view import EventView
from schemas.projects import GroupingRule
from tests.unit.grouping.fingerprint.events import decode, event, frame, grouped

STACK = [frame("pay", "src/pay.js"), frame("main", "src/main.js")]
VIEW = EventView(type="TypeError", message="boom")


def rules(**set_: Any) -> CompiledRules:
    return compile_rules([GroupingRule("mine", "type:TypeError", **set_)])


@pytest.mark.parametrize(
    ("sent", "rule", "part"),
    [
        (event(message="order 81 lost"), "message", "message order <*> lost"),
        (event(message="order 81 lost", stack=STACK), "stack", "frame pay in pay.js"),
        (event(stack=STACK, fingerprint=["payments", "down"]), "client", "given down"),
    ],
    ids=["message", "stack", "client"],
)
def test_client_decides_before_the_stack_and_the_stack_before_the_message(
    sent: dict[str, Any], rule: str, part: str
) -> None:
    found = grouped(sent)
    assert (found.rule, len(found.parts)) == (rule, 3 if rule == "stack" else 2)
    assert part in found.parts


def test_a_projects_rule_decides_before_the_client() -> None:
    sent = decode(msg(event(stack=STACK, fingerprint=["payments"])))
    found = fingerprint(sent, rules(fingerprint=("all of them",)), view=VIEW)
    assert (found.rule, found.parts) == ("rule:mine", ("given all of them",))


def test_a_rule_that_only_marks_frames_leaves_the_clients_fingerprint() -> None:
    sent = decode(msg(event(stack=STACK, fingerprint=["payments"])))
    assert fingerprint(sent, rules(in_app=("*",)), view=VIEW).rule == "client"


def test_a_rule_that_does_not_match_changes_nothing() -> None:
    sent = decode(msg(event(stack=STACK)))
    view = EventView(type="RangeError")
    assert fingerprint(sent, rules(fingerprint=("x",)), view=view) == fingerprint(sent)


@pytest.mark.parametrize("placeholder", ["{{ default }}", "{{default}}", "{{   default}}", " {{ default }} "])
def test_default_alone_is_the_computed_fingerprint(placeholder: str) -> None:
    plain, client = grouped(event(stack=STACK)), grouped(event(stack=STACK, fingerprint=[placeholder]))
    assert client.hash == plain.hash
    assert client.parts == plain.parts
    assert client.rule == "client"


def test_default_among_others_is_replaced_by_the_computed_parts() -> None:
    plain = grouped(event(stack=STACK))
    found = grouped(event(stack=STACK, fingerprint=["tenant 7", "{{ default }}"]))
    assert found.parts == ("given tenant 7", *plain.parts)
    assert found.hash != plain.hash


@pytest.mark.parametrize("nothing", [None, [], [None], ["", "  "], [None, ""]])
def test_an_empty_fingerprint_is_as_if_it_were_left_out(nothing: list[object] | None) -> None:
    assert grouped(event(stack=STACK, fingerprint=nothing)) == grouped(event(stack=STACK))


@pytest.mark.parametrize(
    ("element", "text"), [(7, "7"), (True, "true"), (None, "null"), (1.5, "1.5"), ({"a": 1}, "{'a': 1}")]
)
def test_elements_of_any_json_type_are_taken(element: object, text: str) -> None:
    assert grouped(event(fingerprint=["a", element])).parts == ("given a", f"given {text}")


def test_every_element_counts() -> None:
    assert grouped(event(fingerprint=["a", "b"])).hash != grouped(event(fingerprint=["a"])).hash
    assert grouped(event(fingerprint=["a", "b"])).hash != grouped(event(fingerprint=["b", "a"])).hash


def test_a_given_text_never_meets_a_computed_part() -> None:
    computed = grouped(event(stack=STACK))
    assert grouped(event(stack=STACK, fingerprint=list(computed.parts))).hash != computed.hash


def test_a_discarded_event_says_by_which_rule() -> None:
    found = fingerprint(decode(msg(event(stack=STACK))), rules(discard=True), view=VIEW)
    assert found.discard
    assert found.rule == "rule:mine"


def msg(sent: dict[str, Any]) -> bytes:
    """The event as bytes."""
    return json.dumps(sent).encode()


def test_long_elements_that_differ_at_their_end_are_two_problems() -> None:
    one, other = ["x" * 5000 + end for end in "ab"]
    assert grouped(event(fingerprint=[one])).hash != grouped(event(fingerprint=[other])).hash
    assert grouped(event(fingerprint=[one])).hash == grouped(event(fingerprint=[one])).hash
    assert len(grouped(event(fingerprint=[one])).parts[0]) < 1100


def test_long_lists_that_differ_at_their_end_are_two_problems() -> None:
    found = []
    for end in "ab":
        sent = json.dumps(event(fingerprint=["x"] * 5000 + [end])).encode()
        found.append(fingerprint(decode_identified(sent)))
    assert found[0].hash != found[1].hash
    assert len(found[0].parts) == 1001
