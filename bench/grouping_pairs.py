"""Pairs of errors that are one problem, or two: facts of engines, compilers and frameworks, each with its source.

A line of the file is one `PairCase`. A frame is `FUNCTION | FILE | LINE:COLUMN`, after `+` if it is the
app's, else `-`.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from grouping.fingerprint.event_view import GroupingError, GroupingEvent, GroupingFrame

FILE: Final = Path(__file__).parent.parent / "tests" / "samples" / "grouping" / "pairs.jsonl"


class PairError(Struct, frozen=True):
    """An error as it is in the file."""

    type: str
    message: str | None = None
    stack: list[str] = []
    cause: "PairError | None" = None


class PairCase(Struct, frozen=True):
    """Two errors of one project. `source` says where the fact is documented, `kind` is its subject."""

    kind: str
    same: bool
    platform: str
    about: str
    source: str
    one: PairError
    other: PairError


class PairScore(Struct, frozen=True):
    """Correct pairs and all pairs of one kind: those to be joined, and those to be kept apart."""

    joined: int
    to_join: int
    apart: int
    to_part: int


def read_pairs(path: Path = FILE) -> list[PairCase]:
    """The pairs of a file."""
    decode = msgspec.json.Decoder(PairCase).decode
    return [decode(line) for line in path.read_bytes().splitlines()]


def events_of(pair: PairCase) -> tuple[GroupingEvent, GroupingEvent]:
    """Both as events."""
    return GroupingEvent(_error(pair.one), pair.platform), GroupingEvent(_error(pair.other), pair.platform)


def score_pairs(pairs: Iterable[PairCase], group: Callable[[GroupingEvent], object]) -> dict[str, PairScore]:
    """Scores by kind; `group` names the issue of an event."""
    counts = Counter[tuple[str, bool, bool]]()
    for pair in pairs:
        one, other = map(group, events_of(pair))
        counts[pair.kind, pair.same, (one == other) == pair.same] += 1
    return {
        kind: PairScore(
            counts[kind, True, True],
            counts[kind, True, True] + counts[kind, True, False],
            counts[kind, False, True],
            counts[kind, False, True] + counts[kind, False, False],
        )
        for kind in sorted({kind for kind, _, _ in counts})
    }


def wrong_pairs(pairs: Sequence[PairCase], group: Callable[[GroupingEvent], object]) -> list[PairCase]:
    """The pairs that are not as they should be."""
    return [pair for pair in pairs if (len(set(map(group, events_of(pair)))) == 1) != pair.same]


def _error(error: PairError) -> GroupingError:
    return GroupingError(
        error.type,
        error.message,
        [_frame(frame) for frame in error.stack] or None,
        None if error.cause is None else _error(error.cause),
    )


def _frame(text: str) -> GroupingFrame:
    function, file, position, *_ = [part.strip() for part in text[1:].split("|")] + [""]
    line, _, column = position.partition(":")
    return GroupingFrame(function or None, file, int(line or 0), int(column or 0), text[0] == "+")
