"""Patterns of frames match as those of a shell do, for any pattern."""

from fnmatch import fnmatchcase

from hypothesis import example, given
from hypothesis import strategies as st

from grouping.globs import matcher

patterns = st.text("ab.*?[]!", max_size=12)


@given(patterns, st.text("ab.*?[", max_size=12))
@example("a*a", "a")
@example("**", "")
@example("*a*b", "ab\nab")
def test_a_pattern_matches_as_in_a_shell(pattern: str, text: str) -> None:
    assert matcher(pattern)(text) == fnmatchcase(text, pattern)
