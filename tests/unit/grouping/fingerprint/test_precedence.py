"""Project rules > the client's fingerprint > stack > message."""

import json
from typing import Any

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
