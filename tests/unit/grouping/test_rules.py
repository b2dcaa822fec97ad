"""A project's rules: ordered, matched by the query language, and never in the way of an event."""

import json
from typing import Any

import pytest

from grouping.fingerprint import fingerprint
from grouping.rules import UNTOUCHED, CompiledRule, CompiledRules, RuleOutcome, compile_rules
from query.event_view import EventView, from_json
from schemas.projects import GroupingRule
from tests.unit.grouping.fingerprint.events import decode, event, frame

VIEW = EventView(type="TypeError", message="no coupon", platform="javascript", tags={"tenant": "acme"})


def rule(name: str, match: str = "type:TypeError", **set_: Any) -> GroupingRule:
    return GroupingRule(name, match, **set_)


def grouped(sent: dict[str, Any], *rules: GroupingRule) -> tuple[str, tuple[str, ...]]:
    raw = json.dumps(sent).encode()
    found = fingerprint(decode(raw), compile_rules(rules), view=from_json(raw, "js/1", 0))
    return found.rule, found.parts


RULES: dict[str, tuple[list[GroupingRule], RuleOutcome]] = {
    "the first that sets a fingerprint decides it": (
        [
            rule("other", "type:RangeError", fingerprint=("a",)),
            rule("one", fingerprint=("b",)),
            rule("two", fingerprint=("c",)),
        ],
        RuleOutcome("one", ("b",)),
    ),
    "none matches": ([rule("r", "type:RangeError", fingerprint=("x",))], UNTOUCHED),
    "a disabled one is not asked": ([rule("r", fingerprint=("x",), enabled=False)], UNTOUCHED),
    "a fingerprint of blanks is none": ([rule("r", fingerprint=("", " "))], UNTOUCHED),
    "a discard ends them": (
        [rule("drop", discard=True), rule("later", fingerprint=("x",))],
        RuleOutcome("drop", discard=True),
    ),
}


@pytest.mark.parametrize(("rules", "outcome"), RULES.values(), ids=RULES)
def test_rules_are_asked_in_their_order(rules: list[GroupingRule], outcome: RuleOutcome) -> None:
    assert compile_rules(rules).apply(VIEW) == outcome


@pytest.mark.parametrize(
    "match",
    [
        "type:TypeError",
        "message:*coupon*",
        "tenant:acme",
        "coupon",
        "type:TypeError AND -platform:ios",
        "",
    ],
)
def test_rules_match_by_the_query_language(match: str) -> None:
    assert compile_rules([rule("r", match, fingerprint=("x",))]).apply(VIEW).rule == "r"


def test_a_rule_that_does_not_parse_is_disabled_with_its_error_and_the_rest_go_on() -> None:
    rules = compile_rules([rule("broken", "((", fingerprint=("a",)), rule("fine", fingerprint=("b",))])
    assert list(rules.errors) == ["broken"]
    assert "position 2" in rules.errors["broken"]
    assert rules.apply(VIEW).rule == "fine"


def test_a_rule_that_fails_on_an_event_is_skipped_for_that_one_alone() -> None:
    def fails(view: EventView) -> bool:
        if view.type == "TypeError":
            raise ZeroDivisionError(view.type)
        return True

    rules = CompiledRules(
        [
            CompiledRule("bad", fails, ("a",), (), discard=False),
            CompiledRule("fine", lambda _: True, ("b",), (), discard=False),
        ],
        {},
    )
    [(skipped, reason)] = rules.ask(VIEW).skipped
    assert (skipped.name, reason) == ("bad", "failed on an event: ZeroDivisionError: TypeError")
    assert rules.apply(VIEW).rule == "fine"
    assert rules.apply(EventView(type="RangeError")).rule == "bad"


def test_default_in_a_rule_is_the_computed_fingerprint() -> None:
    sent = event(stack=[frame("pay", "src/pay.js")])
    decided, parts = grouped(sent, rule("split", fingerprint=("acme", "{{ default }}")))
    assert decided == "rule:split"
    assert parts == ("given acme", *grouped(sent)[1])


def test_frames_marked_by_a_rule_become_the_place() -> None:
    sent = event(
        stack=[
            frame("get", "node_modules/wire/index.js", in_app=False),
            frame("pay", "src/pay.js"),
            frame("main", "src/main.js"),
        ]
    )
    assert "frame pay in pay.js" in grouped(sent)[1]
    assert "frame get in wire/index.js" in grouped(sent, rule("ours", in_app=("*/wire/*",)))[1]
    assert "frame main in main.js" in grouped(sent, rule("not ours", not_in_app=("*pay.js",)))[1]


def test_marks_reach_the_frames_of_causes_and_match_functions() -> None:
    cause = {
        "type": "E",
        "message": "",
        "stack": [
            frame("com.lib.Wire.read", "Wire.java", in_app=False),
            frame("com.app.Main.run", "Main.java"),
        ],
    }
    sent = event("com.app.Outer", "x", [frame("com.app.Main.run", "Main.java")], "android", cause)
    found = grouped(sent, rule("ours", "", in_app=("com.lib.*",)))[1]
    assert "cause frame com.lib.Wire.read" in found


def test_the_first_fitting_mark_of_a_frame_decides() -> None:
    sent = event(stack=[frame("pay", "src/pay.js"), frame("main", "src/main.js")])
    found = grouped(sent, rule("a", not_in_app=("*pay.js",)), rule("b", in_app=("*pay.js",)))[1]
    assert "frame main in main.js" in found


def test_marking_leaves_the_given_event_as_it_was() -> None:
    sent = decode(json.dumps(event(stack=[frame("pay", "src/pay.js")])).encode())
    fingerprint(sent, compile_rules([rule("r", not_in_app=("*",))]), view=VIEW)
    assert sent.error.stack is not None
    assert sent.error.stack[0].in_app is True
