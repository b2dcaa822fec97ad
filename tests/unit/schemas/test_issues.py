"""What is declared about outcomes."""

from typing import get_args

from schemas.issues import OUTCOME_LABELS, RULE_SKIPPED, OutcomeKind


def test_every_outcome_of_events_has_its_words_for_people() -> None:
    assert set(OUTCOME_LABELS) == set(get_args(OutcomeKind)) - {RULE_SKIPPED}
