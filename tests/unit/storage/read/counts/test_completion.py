import pytest
from hypothesis import given
from hypothesis import strategies as st

from query.parse import parse
from query.tree import Has
from storage.errors import BadQuery
from storage.read.counts.completion import as_key, field_values
from storage.read.query.question import Question
from storage.read.query.ranges import Range


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=64))
def test_a_completed_key_names_the_tag_that_it_came_from(tag: str) -> None:
    assert parse(f"has:{as_key(tag)}") == Has(tag, True)


@pytest.mark.parametrize(
    ("tag", "key"), [("feature", "feature"), ("os", 'tags["os"]'), ("a b", 'tags["a b"]')]
)
def test_plain_keys_stay_plain(tag: str, key: str) -> None:
    assert as_key(tag) == key


def test_fields_without_values_to_choose_from_are_refused() -> None:
    with pytest.raises(BadQuery):
        field_values(Question(1, Range(0, None), 0), "message", "")
