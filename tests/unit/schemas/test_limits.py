"""The limits are those of section 8, and each has its sentence."""

import pytest

from schemas.limits import Limit


@pytest.mark.parametrize(
    ("limit", "sentence"),
    [
        (Limit.EVENTS_PER_BATCH, "at most 100 events per batch"),
        (Limit.BREADCRUMBS, "at most 100 breadcrumbs per event"),
        (Limit.FRAMES, "at most 100 stack frames per error"),
        (Limit.CAUSE_DEPTH, "cause chain depth: at most 10"),
        (Limit.TAG_KEYS, "at most 50 tag keys per event"),
        (Limit.TAG_KEY_LENGTH, "tag key length: at most 64 chars"),
        (Limit.TAG_VALUE_LENGTH, "tag value length: at most 200 chars"),
        (Limit.CONTEXT_LINES, "at most 5 preContext / postContext lines per frame"),
    ],
)
def test_a_violated_limit_is_named_with_its_value(limit: Limit, sentence: str) -> None:
    assert limit.sentence == sentence
