"""Near duplicates of an issue, by the parts of the fingerprints: candidates to merge. Pure.

Parts are compared by their words, because an engine or a compiler changes one name and keeps the rest. A word
that many candidates have says little. Clients can send any parts, so each list is cut before it is compared,
and the comparison ends when its time is spent.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple

MAX_CANDIDATES: Final = 200
MAX_PARTS: Final = 20
"""Compared parts of each side, the first ones."""
MAX_CHARACTERS: Final = 200
"""Compared characters of a part."""
MAX_WORDS: Final = 100
"""Compared words of each side."""
SECONDS: Final = 0.05
"""Time limit for all candidates."""
_WORD: Final = re.compile(r"\w+")


class Match(NamedTuple):
    """A candidate by its position; `share` of the words of both, weighted, is the same (0 to 1)."""

    position: int
    share: float
    same: list[str]
    only_here: list[str]
    only_there: list[str]


def compared_parts(parts: Iterable[str]) -> list[str]:
    """The parts that count, each once."""
    return list(dict.fromkeys(islice(parts, MAX_PARTS)))


def most_similar(
    parts: Sequence[str], candidates: Iterable[Sequence[str]], clock: Callable[[], float]
) -> list[Match]:
    """The candidates that have a part of an issue, the most similar first; `clock` counts seconds.

    The last ones are left out if there is no time for them.
    """
    begin = clock()
    own = compared_parts(parts)
    here = _words(own)
    read: list[tuple[list[str], set[str]]] = []
    for candidate in candidates:
        # Comparing costs less than reading.
        if clock() - begin > SECONDS / 2:
            break
        compared = compared_parts(candidate)
        read.append((compared, _words(compared)))
    having = Counter(word for _, words in read for word in words)
    weights = {word: math.log(1 + (1 + len(read)) / (1 + having[word])) for word in here | having.keys()}
    matches = []
    for position, (its, there) in enumerate(read):
        if clock() - begin > SECONDS:
            break
        common = set(own).intersection(its)
        if common:
            share = _weight(here & there, weights) / _weight(here | there, weights)
            same = [part for part in own if part in common]
            only_here = [part for part in own if part not in common]
            only_there = [part for part in its if part not in common]
            matches.append(Match(position, round(share, 4), same, only_here, only_there))
    return sorted(matches, key=lambda match: (-match.share, match.position))


def _words(parts: Iterable[str]) -> set[str]:
    return set(islice(_all_words(parts), MAX_WORDS))


def _all_words(parts: Iterable[str]) -> Iterator[str]:
    """Each part, and its words after the first, which is its kind."""
    for part in parts:
        text = part[:MAX_CHARACTERS]
        yield text
        kind, _, rest = text.partition(" ")
        yield from (f"{kind} {word}" for word in _WORD.findall(rest))


def _weight(words: Iterable[str], weights: Mapping[str, float]) -> float:
    # Exact, because a set has no order.
    return math.fsum(weights[word] for word in words)
