import pytest

from processors.stage import DeadEvent, DeadLetterLimit, TooManyBad, dead_letter_messages
from schemas.dead_letters import from_headers


def test_now_and_then_a_bad_record_is_no_reason_to_stop() -> None:
    limit = DeadLetterLimit(window=20, limit=10)
    for _ in range(100):
        limit.note(good=3, bad=1)


def test_when_most_recent_records_are_bad_processing_stops() -> None:
    limit = DeadLetterLimit(window=20, limit=10)
    limit.note(good=100, bad=9)
    with pytest.raises(TooManyBad, match="10 of the last 20"):
        limit.note(good=0, bad=1)


def test_a_letter_keeps_the_original_and_says_where_it_came_from() -> None:
    [letter] = dead_letter_messages(
        "svc.events", 3, "grouper", [DeadEvent(9, b"k", b"v", [("a", b"b")], "broken", 7)]
    )
    assert (letter.key, letter.value) == (b"k", b"v")
    told, original = from_headers(letter.headers)
    assert (told.topic, told.partition, told.offset, told.reason) == ("svc.events", 3, 9, "broken")
    assert (told.stage, told.project_id, original) == ("grouper", "7", [("a", b"b")])
