"""A trial of rules on past events agrees with their processing."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grouping import trial as trial_module
from grouping.fingerprint import fingerprint
from grouping.rules import compile_rules
from grouping.trial import Move, PastEvent, moves, run_trial
from query.event_view import from_json
from schemas.projects import GroupingRule
from tests.unit.grouping.fingerprint.events import decode, event, frame

CART = event(error={"type": "CartError", "message": "no cart", "stack": [frame("add", "src/cart.js")]})
PAY = event(error={"type": "PayError", "message": "no money", "stack": [frame("pay", "src/pay.js")]})


def past(sent: dict[str, Any], issue: int = 1) -> PastEvent:
    raw = json.dumps(sent).encode()
    return PastEvent(raw, issue, fingerprint(decode(raw)).hash, "js/1", 1_000)


def rule(name: str, match: str, **set_: Any) -> GroupingRule:
    return GroupingRule(name, match, **set_)


def test_events_that_no_rule_touches_stay_in_their_issue() -> None:
    trial = run_trial([], [past(CART, 7), past(PAY, 8)])
    assert trial.whole
    assert {move.issue for move in moves(trial.events, lambda _: 99)} == {7, 8}
    assert not any(move.is_affected for move in moves(trial.events, lambda _: 99))


def test_a_rule_brings_events_of_two_issues_together() -> None:
    rules = [rule("one", "type:[CartError, PayError]", fingerprint=("shop",))]
    trial = run_trial(rules, [past(CART, 7), past(CART, 7), past(PAY, 8)])
    affected = moves(trial.events, lambda _: 99)
    assert [(move.event.past.issue, move.issue, move.events) for move in affected] == [(7, 99, 2), (8, 99, 1)]
    assert all(move.event.fitting == (0,) for move in affected)


def test_events_dropped_by_a_rule_or_the_project_have_no_issue_any_more() -> None:
    kept = past(PAY, 8)
    trial = run_trial([rule("noise", "type:CartError", discard=True)], [past(CART), kept], {kept.fingerprint})
    assert [move.issue for move in moves(trial.events, lambda _: 99)] == [None, None]


def test_rules_after_one_that_drops_are_not_asked() -> None:
    rules = [rule("noise", "type:CartError", discard=True), rule("two", "type:CartError", fingerprint=("x",))]
    [one] = run_trial(rules, [past(CART)]).events
    assert one.fitting == (0,)


def test_places_count_switched_off_rules_too() -> None:
    off = rule("off", "type:CartError", fingerprint=("x",), enabled=False)
    [one] = run_trial([off, rule("on", "type:CartError", fingerprint=("y",))], [past(CART)]).events
    assert (one.fitting, one.found.rule) == ((1,), "rule:on")


def test_unreadable_events_are_counted_and_passed_over() -> None:
    broken = PastEvent(b"{", 1, 1, "", 0)
    trial = run_trial([], [broken, past(CART), PastEvent(b'"text"', 1, 1, "", 0)])
    assert (trial.unreadable, len(trial.events)) == (2, 1)


def test_a_trial_ends_when_its_time_is_up() -> None:
    answers = iter([True, True, False])
    trial = run_trial([], [past(CART)] * 5, (), lambda: next(answers))
    assert (len(trial.events), trial.whole) == (2, False)


QUERIES = ["type:CartError", "file:src/*", "pay", "-type:CartError", "platform:javascript", "has:user"]


@given(
    st.lists(
        st.builds(
            GroupingRule,
            name=st.uuids().map(str),
            match=st.sampled_from(QUERIES),
            fingerprint=st.none() | st.just(("a", "{{ default }}")),
            in_app=st.none() | st.just(("src/*",)),
            discard=st.booleans(),
            enabled=st.booleans(),
        ),
        max_size=5,
    )
)
def test_every_event_is_grouped_as_processing_groups_it(rules: list[GroupingRule]) -> None:
    events = [past(CART), past(PAY)]
    for one in run_trial(rules, events).events:
        view = from_json(one.past.event, one.past.sdk, one.past.received_ms)
        assert one.found == fingerprint(decode(one.past.event), compile_rules(rules), view=view)


def test_ways_are_distinguished_by_the_rules_that_fit() -> None:
    same = past(CART, 7)
    trial = run_trial([rule("one", "type:CartError", in_app=("nowhere",))], [same, past(PAY, 7)])
    assert [(type(move), move.is_affected) for move in moves(trial.events, lambda _: 99)] == [
        (Move, True),
        (Move, False),
    ]


def test_a_trial_reports_the_time_of_each_rule() -> None:
    clock = iter(range(0, 1000, 10))
    rules = [
        rule("off", "", discard=True, enabled=False),
        rule("a", "type:CartError", in_app=("x",)),
        rule("b", ""),
    ]
    trial = run_trial(rules, [past(CART), past(PAY)], cpu_ns=lambda: next(clock))
    assert trial.cpu_ns == {1: 20, 2: 20}


def test_a_rule_that_is_skipped_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial_module, "MAX_STEPS", 0)
    trial = run_trial([rule("a", "type:CartError", fingerprint=("x",))], [past(CART)])
    assert (trial.cpu_ns, [one.skipped for one in trial.events]) == ({}, [(0,)])
