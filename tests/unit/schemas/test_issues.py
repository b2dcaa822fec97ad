"""Declarations about outcomes and titles."""

from typing import get_args

import pytest

from schemas.issues import (
    NOT_OF_EVENTS,
    OUTCOME_LABELS,
    Outcome,
    OutcomeKind,
    decode_outcomes,
    encode_json,
    issue_title,
)
from storage.tables.migrations.migrate import migrations


def test_every_outcome_of_events_has_its_words_for_people() -> None:
    assert set(OUTCOME_LABELS) == set(get_args(OutcomeKind)) - set(NOT_OF_EVENTS)


def test_the_analysts_view_leaves_out_outcomes_of_no_event() -> None:
    (views,) = (each.sql for each in migrations() if each.name == "analysts")
    assert f"outcome NOT IN {NOT_OF_EVENTS}" in views


def test_an_outcome_without_an_example_is_written_without_the_field() -> None:
    plain = Outcome("7", "2026-01-02T03:04:00.000Z", "js/1", "invalid", "schema", 3, "edge-1", 9)
    assert b"example" not in encode_json(plain)
    assert decode_outcomes(encode_json(plain)) == [plain]


@pytest.mark.parametrize(
    ("error_type", "message", "title"),
    [("KeyError", "7", "KeyError: 7"), ("E", "a\n  b", "E: a b"), ("E", "", "E"), ("", "m", "m")],
)
def test_a_title_is_the_type_and_the_message_on_one_line(error_type: str, message: str, title: str) -> None:
    assert issue_title(error_type, message) == title
