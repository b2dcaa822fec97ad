from broker.dead_events import DeadEvent, dead_letter_messages
from schemas.dead_letters import from_headers


def test_a_dead_letter_keeps_the_original_and_names_its_origin() -> None:
    [letter] = dead_letter_messages(
        "svc.events", 3, "grouper", [DeadEvent(9, b"k", b"v", [("a", b"b")], "broken", 7)]
    )
    assert (letter.key, letter.value) == (b"k", b"v")
    dead_letter, original = from_headers(letter.headers)
    assert (dead_letter.topic, dead_letter.partition, dead_letter.offset, dead_letter.reason) == (
        "svc.events",
        3,
        9,
        "broken",
    )
    assert (dead_letter.stage, dead_letter.project_id, original) == ("grouper", "7", [("a", b"b")])
