"""Records of who changed what, in words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from control.change_log import changes_between
from control.project_edits import add_token, create
from dashboard.view.change_text import values, words
from schemas.change_records import Author


def test_a_change_of_a_project_is_told_in_words() -> None:
    before = create("shop", now_ms=1)
    [change] = changes_between(before, add_token(before, now_ms=86_400_000), Author("ann", "page"), 2)
    assert words(change.kind) == "Token created"
    [(field, token)] = values(change.after)
    assert field == "Tokens"
    assert token.startswith("token …")
    assert values(change.before) == [("Tokens", "none")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ('{"retentionDays":90,"allowsUnknown":true,"name":""}',
         [("Retention days", "90"), ("Allows unknown", "yes"), ("Name", "none")]),
        ('{"rules":[{"name":"a","fingerprint":["x","y"],"inApp":null,"discard":false},{"name":"b"}]}',
         [("Rules", "name a, fingerprint x; y, discard no; name b")]),
        ('{"rules":[{"name":"cut', [("", '{"rules":[{"name":"cut')]),
    ],
)  # fmt: skip
def test_values_of_any_shape_are_told(text: str, expected: list[tuple[str, str]]) -> None:
    assert values(text) == expected


@given(st.text())
def test_no_text_fails(text: str) -> None:
    assert all(isinstance(value, str) for _, value in values(text))
