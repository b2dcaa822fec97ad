"""The steps of rules: patterns times the searched text."""

import pytest

from grouping.rules import compile_rules
from grouping.steps import EventSize, Searches, size_of
from query.event_view import EventView
from schemas.projects import GroupingRule


@pytest.mark.parametrize(
    ("match", "searches"),
    [
        ("", Searches()),
        ("timeout", Searches(1)),
        ("type:[A, B] -tenant:x", Searches(3)),
        ("has:user", Searches(1)),
        ("has:file", Searches(names=1)),
        ("tags[file]:a", Searches(1)),
        ("file:src/* OR (function:pay type:E)", Searches(1, 2)),
        ("file:*a*b*", Searches(names=6)),
        (f"message:{'x' * 32}", Searches(3)),
    ],
)
def test_a_query_searches_once_for_each_text_and_longer_for_long_ones(match: str, searches: Searches) -> None:
    rules = compile_rules([GroupingRule("r", match, fingerprint=("x",))])
    [rule] = (*rules.of_error, *rules.of_event)
    assert rule.searches == searches


def test_patterns_of_frames_count_with_their_rule() -> None:
    [rule] = compile_rules([GroupingRule("r", "type:E", in_app=("*a*", "b"), not_in_app=("*c*",))]).of_error
    assert rule.searches == Searches(1, 3)


def test_the_steps_depend_on_the_searched_text() -> None:
    view = EventView(type="E", message="no", files=("a.js", "b.js"), functions=("pay",))
    size = size_of(view)
    assert size == EventSize(text=240 + 3, names=3 * 120 + 11)
    assert Searches(2, 3).steps(size) == 2 * size.text + 3 * size.names
