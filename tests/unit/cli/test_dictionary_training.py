import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.demo.sample_events import load_samples
from cli.dictionary_training import SIZES, best, measure, split, train
from schemas.payload import SHIPPED_LEVEL
from schemas.payload_dictionaries import Dictionaries

EVENTS = [msgspec.json.encode(event) for event in load_samples()]


@given(st.lists(st.tuples(st.integers(0, 9), st.binary(min_size=1, max_size=4))))
def test_every_event_is_in_one_part_and_no_unknown_issue_is_trained_on(
    pairs: list[tuple[int, bytes]],
) -> None:
    named = [(issue, b"%d/%d" % (issue, number)) for number, (issue, _) in enumerate(pairs)]
    parts = split(named)
    assert sorted(parts.training + parts.known + parts.unknown) == sorted(event for _, event in named)
    issues = [
        {event.partition(b"/")[0] for event in part} for part in (parts.training, parts.known, parts.unknown)
    ]
    assert not issues[2] & (issues[0] | issues[1])
    assert issues[1] <= issues[0]


def test_a_dictionary_of_ones_own_events_beats_the_shipped_and_is_the_same_again() -> None:
    # Names that no shipped dictionary can know.
    own = [
        (number % 40, event.replace(b"function", b"Funktion").replace(b"file", b"Quelldatei"))
        for number, event in enumerate(EVENTS)
    ]
    parts = split(own)
    trained = best(parts, 1000)
    shipped = measure(Dictionaries().content(1), parts, SHIPPED_LEVEL)
    assert trained.known < shipped.known
    assert trained.mean < shipped.mean
    assert len(trained.content) <= max(SIZES)
    again = [event for _, event in reversed(own)]
    assert train(again, 1000, 16_384) == train([event for _, event in own], 1000, 16_384)


def test_too_few_events_are_reported() -> None:
    with pytest.raises(ValueError, match="too few"):
        train([b"x"], 1000, 65_536)
