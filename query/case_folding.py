"""One definition of "whatever the case" for the evaluator and for SQL: each code point by itself, without context.

Databases and languages differ in Unicode's special cases (a final sigma, a dotted capital I). Here a code point folds to its lower
case where that is one code point and does not cross between ASCII and the rest.
"""

from collections import defaultdict
from functools import cache

from query.tree import Pattern

_LAST_CASED = 0x1_E944


def fold(text: str) -> str:
    """The text with every code point folded; its length stays."""
    return text.lower() if text.isascii() else "".join(map(_fold_one, text))


def fold_pattern(pattern: Pattern) -> Pattern:
    """The pattern with its literal parts folded."""
    return Pattern(tuple(map(fold, pattern.parts)))


@cache
def _fold_one(character: str) -> str:
    lower = character.lower()
    return lower if len(lower) == 1 and lower.isascii() == character.isascii() else character


@cache
def _origins() -> dict[str, str]:
    """For each folded code point beyond ASCII that several fold to, all of them."""
    origins: dict[str, str] = defaultdict(str)
    for code in range(0x80, _LAST_CASED):
        folded = _fold_one(chr(code))
        if folded != chr(code):
            origins[folded] = (origins[folded] or folded) + chr(code)
    return dict(origins)


def variants(folded: str) -> str:
    """Every code point beyond ASCII that folds to this one, itself included; ASCII letters are lowered by the database."""
    return folded if folded.isascii() else _origins().get(folded, folded)
