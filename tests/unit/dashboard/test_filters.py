from hypothesis import given
from hypothesis import strategies as st

from dashboard.view.filters import field_query, tag_query
from query.evaluate import matches
from query.event_view import EventView
from query.parse import parse

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)


def test_simple_filters_are_written_as_people_write_them() -> None:
    assert tag_query("tier", "pro") == "tier:pro"
    assert tag_query("is", "on") == 'tags["is"]:on'
    assert field_query("release", "shop@1.0.0+1") == "release:shop@1.0.0+1"


@given(TEXT, TEXT)
def test_a_link_to_a_tag_finds_events_with_it_and_no_others(key: str, value: str) -> None:
    query = parse(tag_query(key, value))
    assert matches(query, EventView(tags={key: value}))
    assert not matches(query, EventView(tags={key: value + "x"}))


@given(TEXT)
def test_a_link_to_a_field_finds_events_with_it(value: str) -> None:
    assert matches(parse(field_query("environment", value)), EventView(environment=value))
    assert matches(parse(f"({field_query('environment', value)}) is:open OR a:b"), EventView()) is False
