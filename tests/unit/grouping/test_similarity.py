"""The issues that are similar to one, their common parts, and the bounded cost for any input."""

import random
import time

import pytest

from grouping.similarity import (
    MAX_CANDIDATES,
    MAX_CHARACTERS,
    MAX_PARTS,
    MAX_WORDS,
    SECONDS,
    compared_parts,
    most_similar,
)

NAMED = ["type TypeError", "fault null.name", "frame onTyping in session.js"]
NAMELESS = [*NAMED[:2], "frame <anonymous> in session.js", "frame route in session.js"]


class ManualClock:
    """Each look at it takes a while."""

    def __init__(self, look_seconds: float = 0) -> None:
        self.now, self.look_seconds = 100.0, look_seconds

    def __call__(self) -> float:
        self.now += self.look_seconds
        return self.now


def positions(parts: list[str], *candidates: list[str]) -> list[int]:
    return [match.position for match in most_similar(parts, candidates, ManualClock())]


def test_equal_parts_are_shared_and_others_are_listed_by_side() -> None:
    equal, other = most_similar(NAMED, [NAMED, NAMELESS], ManualClock())
    assert (equal.share, equal.same, equal.only_here, equal.only_there) == (1, NAMED, [], [])
    assert 0 < other.share < 1
    assert (other.same, other.only_here, other.only_there) == (NAMED[:2], NAMED[2:], NAMELESS[2:])


def test_rare_parts_weigh_more() -> None:
    common = [["type TypeError", f"fault null.x{number}"] for number in range(20)]
    rare = ["type RangeError", "fault null.name"]
    assert positions(["type TypeError", "fault null.name"], *common, rare)[0] == 20


def test_a_message_that_differs_in_a_word_is_more_similar_than_another() -> None:
    red = ["type E", "message unknown colour red"]
    assert positions(red, ["type E", "message disk is full"], ["type E", "message unknown colour blue"]) == [
        1,
        0,
    ]


def test_a_frame_whose_name_an_engine_lost_is_more_similar_than_one_of_another_file() -> None:
    elsewhere = [*NAMED[:2], "frame <anonymous> in other.js", "frame route in other.js"]
    assert positions(NAMED, elsewhere, NAMELESS) == [1, 0]


def test_a_word_says_something_only_in_parts_of_its_kind() -> None:
    match, other = most_similar(
        ["type E", "message save"], [["type E", "frame save"], ["type E", "message save it"]], ManualClock()
    )
    assert (match.position, other.position) == (1, 0)


def test_candidates_without_a_common_part_are_left_out() -> None:
    assert positions(NAMED, ["type TypeError2", "fault null.names"], []) == []


def test_equally_similar_ones_keep_their_order() -> None:
    assert positions(NAMED, NAMELESS, NAMED, NAMELESS) == [1, 0, 2]


@pytest.mark.parametrize(
    ("look_seconds", "compared"), [(0, 50), (SECONDS / 40, 19), (SECONDS, 0)], ids=["fast", "slow", "late"]
)
def test_candidates_for_which_there_is_no_time_are_left_out(look_seconds: float, compared: int) -> None:
    clock = ManualClock(look_seconds)
    matches = most_similar(NAMED, [NAMED] * 50, clock)
    assert [match.position for match in matches] == list(range(compared))
    # Nothing is begun after the end.
    assert clock.now - 100 <= SECONDS + 3 * look_seconds


def test_parts_are_cut_to_the_first_ones() -> None:
    parts = [f"part {number}" for number in range(MAX_PARTS)]
    assert compared_parts([*parts[:1], *parts, "more"]) == parts[:-1]
    (match,) = most_similar([*parts, "here"], [[*parts, "there"]], ManualClock())
    assert (match.share, match.only_here, match.only_there) == (1, [], [])


def test_words_are_cut_to_the_first_ones() -> None:
    many = "message " + " ".join("abcdefghij"[: number % 10 + 1] for number in range(MAX_WORDS))
    assert len(many) > MAX_CHARACTERS
    (match,) = most_similar(["type E", many], [["type E", many[:MAX_CHARACTERS]]], ManualClock())
    assert match.share == 1
    assert match.same == ["type E"]


def _hostile(kind: str, seed: int) -> list[str]:
    """Eight thousand bytes of parts, as much as an issue has."""
    letters = random.Random(seed)
    match kind:
        case "one letter each":
            return [chr(0x4E00 + (seed * 7 + number) % 20_000) for number in range(2600)]
        case "one long part":
            return ["x" * 8000]
        case "many words":
            return [" ".join(letters.choices("abcdefghijklmnop", k=400)) for _ in range(10)]
        case "equal beginnings":
            return [f"{'y' * 380} {number}" for number in range(20)]
        case _:
            return ["\udcff \x00" * 100, "frame " * 300, "", " "]


@pytest.mark.parametrize(
    "kind", ["one letter each", "one long part", "many words", "equal beginnings", "broken texts"]
)
def test_hostile_parts_cost_no_more_than_the_budget(kind: str) -> None:
    candidates = [["type E", *_hostile(kind, number)] for number in range(MAX_CANDIDATES)]
    begin = time.thread_time()
    matches = most_similar(["type E", *_hostile(kind, 0)], candidates, time.thread_time)
    # The rest is the last candidate, and sorting.
    assert time.thread_time() - begin < 3 * SECONDS
    assert matches
    assert matches[0].share == 1
