"""Case folding shared by the evaluator and SQL: each code point separately, without context.

Databases and languages differ in Unicode's special cases (a final sigma, a dotted capital I). Here a code
point folds to its lower case where that is one code point and does not cross between ASCII and the rest.
"""

import re
from collections import defaultdict
from functools import cache

from query.tree import Pattern

# The code points whose lower case depends on their neighbours, is longer, or is ASCII.
_SPECIAL = re.compile("[\u03a3\u0130\u212a]")
_LAST_CASED = 0x1_E944


def fold(text: str) -> str:
    """The text with every code point folded, of the same length."""
    if text.isascii() or _SPECIAL.search(text) is None:
        return text.lower()
    return "".join(map(_fold_one, text))


def fold_pattern(pattern: Pattern) -> Pattern:
    """The pattern with its literal parts folded."""
    return Pattern(tuple(map(fold, pattern.parts)))


@cache
def _fold_one(character: str) -> str:
    lower = character.lower()
    return lower if len(lower) == 1 and lower.isascii() == character.isascii() else character


@cache
def _origins() -> dict[str, str]:
    """The variants of each non-ASCII folded code point that has several."""
    origins: dict[str, str] = defaultdict(str)
    for code in range(0x80, _LAST_CASED):
        folded = _fold_one(chr(code))
        if folded != chr(code):
            origins[folded] = (origins[folded] or folded) + chr(code)
    return dict(origins)


def variants(folded: str) -> str:
    """All non-ASCII code points that fold to this one, including itself; the database lowers ASCII letters."""
    return folded if folded.isascii() else _origins().get(folded, folded)
