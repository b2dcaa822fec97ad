from hypothesis import given

from query.evaluate import matches
from query.event_view import EventView
from query.parse import parse
from query.tree import EVERYTHING, Not, Query
from tests.unit.query.trees import NOW_MS, queries, views


def test_times_before_now_are_counted_from_the_given_now() -> None:
    query, event = parse("timestamp:>-1h"), EventView(timestamp=NOW_MS)
    assert matches(query, event, NOW_MS + 3_599_999)
    assert not matches(query, event, NOW_MS + 3_600_000)


def test_many_wildcards_over_a_long_message_take_no_time_to_speak_of() -> None:
    view = EventView(message="a" * 1_000_000)
    assert not matches(parse("a*a*a*a*a*a*a*a*a*a*a*a*a*b"), view)


@given(queries, views)
def test_a_query_and_its_negation_never_agree(query: Query, view: EventView) -> None:
    assert matches(query, view, NOW_MS) != matches(Not(query), view, NOW_MS)


@given(views)
def test_the_empty_query_holds_for_every_event(view: EventView) -> None:
    assert matches(EVERYTHING, view)
