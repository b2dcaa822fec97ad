"""Patterns in the manner of a shell: `*`, `?`, `[abc]`, case-sensitive. Matching never goes back over a text.

Text between two stars is searched from where the one before it was found. A text therefore costs at most its
length times that of the pattern, for any pattern.
"""

import re
from collections.abc import Callable
from fnmatch import translate
from functools import cache
from typing import Final

from grouping.steps import pattern_searches
from query.patterns import fitting, normal
from query.tree import Pattern

_SETS: Final = re.compile(r"[?\[]")


def matcher(pattern: str) -> Callable[[str], bool]:
    """Whether a whole text fits the pattern."""
    if _SETS.search(pattern) is None:
        return fitting(Pattern(normal(pattern.split("*"))))

    @cache
    def fits() -> Callable[[str], object]:
        # Each star is an atomic group, which prevents backtracking.
        return re.compile(translate(pattern)).match

    return lambda text: fits()(text) is not None


def searches(pattern: str) -> int:
    """The searches of a pattern in a name; a regular expression takes longer than a comparison."""
    parts = pattern.split("*")
    return pattern_searches(parts if _SETS.search(pattern) is None else [*parts, "?" * len(pattern)])
