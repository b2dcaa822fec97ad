import pytest

from query.keys import KEYS, nearest, tag_keys
from query.parse import parse


@pytest.mark.parametrize(
    ("query", "keys"),
    [
        ("", []),
        ("word is:open assignee:zoe has:user events:>3 environment:prod", []),
        ("tier:pro -(tags[os]:x OR has:coupon) tier:free", ["tier", "os", "coupon"]),
        ("assigned:me", ["assigned"]),
    ],
)
def test_tags_of_a_query_are_named_once_wherever_they_stand(query: str, keys: list[str]) -> None:
    assert tag_keys(parse(query)) == keys


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("assigned", "assignee"),
        ("enviroment", "environment"),
        ("OSVERSION", "osVersion"),
        ("cupon", "coupon"),
    ],
)
def test_a_misspelt_key_is_near_the_intended_one(typed: str, meant: str) -> None:
    assert nearest(typed, [*KEYS, "coupon", "tier"])[0] == meant


def test_an_unrelated_word_has_no_near_key() -> None:
    assert nearest("zzzzzz", KEYS) == []
