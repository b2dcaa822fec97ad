"""What is declared about outcomes."""

from typing import get_args

from schemas.issues import NOT_OF_EVENTS, OUTCOME_LABELS, Outcome, OutcomeKind, decode_outcomes, encode_json
from storage.tables.migrations.migrate import migrations


def test_every_outcome_of_events_has_its_words_for_people() -> None:
    assert set(OUTCOME_LABELS) == set(get_args(OutcomeKind)) - set(NOT_OF_EVENTS)


def test_the_analysts_view_leaves_out_what_is_none_of_an_event() -> None:
    (views,) = (each.sql for each in migrations() if each.name == "analysts")
    assert f"outcome NOT IN {NOT_OF_EVENTS}" in views


def test_an_outcome_without_an_example_is_written_without_the_field() -> None:
    plain = Outcome("7", "2026-01-02T03:04:00.000Z", "js/1", "invalid", "schema", 3, "edge-1", 9)
    assert b"example" not in encode_json(plain)
    assert decode_outcomes(encode_json(plain)) == [plain]
