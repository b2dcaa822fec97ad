"""Rules in the grouper: remembered answers change nothing, and no project's rules hold up the events of others."""

from time import process_time
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grouping.fingerprint import GroupingEvent, fingerprint
from grouping.rules import TOO_EXPENSIVE, compile_rules
from processors.grouper.fingerprinter import Fingerprinter
from processors.grouper.rule_budget import RuleBudget
from query.event_view import from_json
from schemas.chunks import ChunkEvent
from schemas.projects import GroupingRule
from tests.unit.grouping.fingerprint.events import frame
from tests.unit.processors.grouper.rule_sets import MARKS, MATCHES, grouper, sample_events
from tests.unit.processors.made import START, event_id

decode = msgspec.json.Decoder(GroupingEvent).decode
BODIES = [event.payload for event in sample_events()]
VARIED = (
    GroupingRule("tenant", "tags[n]:[1,2]", fingerprint=("{{ default }}", "{{ tags[n] }} {{ function }}")),
    GroupingRule("noise", "message:*3*", discard=True),
    *MATCHES,
    *MARKS,
    GroupingRule("ours", "environment:production", in_app=("*node_modules*", "*a*")),
    GroupingRule("rest", "file:*c*", fingerprint=("{{ file }} {{ message }}", "{{ type }}")),
)


def carried(number: int, body: bytes) -> ChunkEvent:
    return ChunkEvent(1, event_id(number), START, "web/1.0", body)


@given(st.lists(st.tuples(st.integers(0, len(BODIES) - 1), st.integers(0, 3)), max_size=20))
def test_earlier_events_decide_nothing_under_rules(mix: list[tuple[int, int]]) -> None:
    remembers = grouper(VARIED)
    for number, (one, tag) in enumerate(mix):
        body = msgspec.json.encode(msgspec.json.decode(BODIES[one]) | {"tags": {"n": str(tag)}})
        _, found = remembers.group(carried(number, body))
        alone = fingerprint(decode(body), compile_rules(VARIED), view=from_json(body, "web/1.0", START))
        assert (found.grouping.rule, found.grouping.parts) == (alone.rule, alone.parts)
        assert (found.fingerprint == 0) == alone.discard


def deep_event(number: int, frames: int = 100) -> bytes:
    """An event whose frames no cache has seen."""
    stack = [
        frame(f"com.example.Service{number}.handle{n}", f"src/service{number}/handle{n}.java")
        for n in range(frames)
    ]
    event = msgspec.json.decode(BODIES[0])
    return msgspec.json.encode(event | {"platform": "android", "error": {**event["error"], "stack": stack}})


def before(event: bytes) -> Any:
    return Fingerprinter.group(grouper([]), carried(0, event))[1].grouping.parts


def test_rules_that_are_too_expensive_hold_up_no_other() -> None:
    many = GroupingRule("many", "", not_in_app=tuple(f"*nothing{n}*" for n in range(10_000)))
    other = GroupingRule("other", "", fingerprint=("{{ default }}", "x"))
    guarded = grouper([many, other])
    budget = RuleBudget()
    for number in range(20):
        event = deep_event(number)
        assert guarded.group(carried(number, event), budget)[1].grouping.parts == (*before(event), "given x")
    assert budget.skipped == {(1, START // 60_000, "tooExpensive", "many"): 20}


def test_an_expensive_rule_is_asked_where_it_is_cheap() -> None:
    many = GroupingRule("many", "", not_in_app=(*[f"*nothing{n}*" for n in range(10_000)], "*handle0"))
    event = deep_event(0, frames=2)
    assert "frame com.example.Service0.handle1" in grouper([many]).group(carried(0, event))[1].grouping.parts


def test_which_rules_are_too_expensive_depends_on_the_event_alone() -> None:
    dear = GroupingRule("dear", "", not_in_app=("*x*",) * 3000)
    rules = compile_rules([dear, GroupingRule("cheap", "type:E", discard=True)])
    for frames, expected in ((2, []), (100, [("dear", TOO_EXPENSIVE)]), (3, [])):
        body = deep_event(frames, frames)
        answers = rules.ask(from_json(body, "web/1.0", START))
        assert [(rule.name, reason) for rule, reason in answers.skipped] == expected


HOSTILE = {
    "stars": "*a*a*a*a*a*a*b",
    "sets": "*[ab]*[ab]*[ab]*c",
    "marks": "*a?a?a?*b",
    "long": "*" + "a" * 190 + "b*",
}


@pytest.mark.parametrize("pattern", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_pattern_costs_in_proportion_to_the_text(pattern: str) -> None:
    def spent(characters: int) -> float:
        times = []
        for salt in "xyz":
            stack = [frame(f"{n}{salt}{'a' * characters}", "f") for n in range(100)]
            event = decode(msgspec.json.encode({"error": {"type": "E", "message": "", "stack": stack}}))
            rules = compile_rules([GroupingRule("r", "", not_in_app=(pattern,))])
            view = from_json(msgspec.json.encode({}), "", 0)
            start = process_time()
            fingerprint(event, rules, view=view)
            times.append(process_time() - start)
        return min(times)

    assert spent(590) < 40 * max(spent(37), 1e-4)


def test_twenty_ordinary_rules_cost_about_as_much_as_the_event() -> None:
    """Measured in turns: about 1.6 times the event's own; 21 times where nothing is remembered."""
    events, spent = sample_events()[:100], dict[bool, float]()
    groupers = {has_rules: grouper([*MATCHES, *MARKS] * has_rules) for has_rules in (False, True)}
    for _ in range(6):
        for has_rules, one in groupers.items():
            budget, start = RuleBudget(), process_time()
            for event in events:
                one.group(event, budget)
            spent[has_rules] = min(spent.get(has_rules, 9), process_time() - start)
    assert spent[True] < 6 * spent[False]
