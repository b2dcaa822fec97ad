"""No input costs more than its size: counted in relation, never in seconds alone."""

from collections.abc import Iterator
from time import process_time

import pytest

from grouping.fingerprint import (
    GroupingEvent,
    faults,
    fingerprint,
    messages,
    native,
    sites,
)
from grouping.fingerprint.event_view import GroupingError, GroupingFrame
from grouping.fingerprint.frames import Family
from grouping.fingerprint.made_names import source_name
from tests.long_forms import first_quick

HOSTILE = {
    "letters": "a",
    "open": "(",
    "angles": "<",
    "dotted": "a.",
    "dashed": "-a",
    "digits": "1 ",
    "dollars": "$1",
    "quotes": "'x ",
    "equals": "a=",
    "slashes": "/a",
    "blocks": "_block_invoke",
    "suffixes": ".1",
    "lambdas": "lambda$",
    "closures": "closure #1 in ",
    "types": "int* ",
    "modules": "node_modules/",
    "hashes": "-a1b2c3",
    "colons": "a::",
    "evaluated": "([",
    "numbered": "__1",
    "brackets": "[",
    "amounts": ",12",
    "json": "JSON ",
    "reading": "Cannot read properties of undefined (reading '",
}
# Sixteen times the input may cost this much more: a quadratic step would cost 256 times as much.
GENEROUS = 40
OF_LETTERS = 10
CACHES = (
    *(sites.to_site, faults.fault),
    *(messages.template, messages.headline),
)
PLACES = {"javascript": ".js", "android": ".java", "ios": ".swift"}


def event(platform: str, text: str, salt: str, in_app: bool) -> GroupingEvent:
    """100 frames of each of 11 errors, each with a different name, and a long message."""

    def error(depth: int) -> GroupingError:
        stack = [
            GroupingFrame(
                f"{salt}{depth}{index}{text}", f"{salt}{depth}{index}{text}{PLACES[platform]}", 1, 1, in_app
            )
            for index in range(100)
        ]
        return GroupingError("Error", f"{salt}{text}{depth}", stack, error(depth + 1) if depth < 10 else None)

    return GroupingEvent(error(0), platform)


def tries(platform: str, text: str, in_app: bool) -> Iterator[float]:
    """CPU seconds of each of three events that no cache has seen."""
    forget()
    for salt in "xyz":
        made = event(platform, text, salt, in_app)
        start = process_time()
        fingerprint(made)
        yield process_time() - start


@pytest.fixture(autouse=True)
def _nothing_remembered() -> None:
    forget()


def forget() -> None:
    for cached in CACHES:
        cached.cache_clear()


@pytest.mark.parametrize("in_app", first_quick([True, False]))
@pytest.mark.parametrize("platform", PLACES)
@pytest.mark.parametrize("piece", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_costs_like_letters_and_sixteen_times_as_much_of_it_not_much_more(
    platform: str, piece: str, in_app: bool
) -> None:
    letters = min(tries(platform, "a" * 400, in_app=False))
    small = min(tries(platform, (piece * 400)[:400], in_app))
    assert small < OF_LETTERS * letters
    most = GENEROUS * max(small, 1e-4)
    assert any(large < most for large in tries(platform, (piece * 6400)[:6400], in_app))


def test_sixteen_times_the_gap_in_a_name_is_not_much_more_work() -> None:
    def cost(gap: int) -> float:
        start = process_time()
        source_name("a" + " " * gap + "b(", Family.JVM, "")
        return process_time() - start

    small, large = [min(cost(gap) for _ in range(3)) for gap in (500, 8000)]
    assert large < GENEROUS * max(small, 1e-4)


def test_a_bracket_in_a_symbol_costs_as_much_as_a_letter() -> None:
    def cost(piece: str) -> float:
        start = process_time()
        for _ in range(20):
            native.function_name("f(" + piece * 140)
        return process_time() - start

    letters, brackets = [min(cost(piece) for _ in range(5)) for piece in ("ab", "()")]
    assert brackets < 4 * letters


def test_a_message_of_100_kilobytes_costs_as_much_as_its_beginning() -> None:
    text = "word 17 'x' /a/b " * 8000
    assert messages.template(text) == messages.template(text[:600])
    assert faults.fault("E", "boom " + text) == faults.fault("E", ("boom " + text)[:400])


def test_frames_past_the_bound_are_not_looked_at() -> None:
    made = event("android", "com.example.Some.name", "q", in_app=False)
    fingerprint(made)
    assert sites.to_site.cache_info().misses <= 200
