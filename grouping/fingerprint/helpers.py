"""Functions whose names say that they check, raise, wrap or pass on, but not for which purpose. Pure.

Their callers tell problems apart.
"""

import re
from typing import Final

# Names of assertions and failures in JavaScript, the JVM's languages, .NET, Python, Go and Rust; then words
# for functions that create or pass on.
_TEXT: Final = """
    assert check require verify validate ensure expect invariant unreachable fail throw raise panic abort
    error create execute wrapper
"""
# Subjects of assertions, never first: java.util.Objects, Preconditions of Guava, Validate of Commons Lang.
_ASSERTED: Final = """
    never not null text non value bounds range index indexes argument arguments state element elements position
    empty blank true false valid instance
"""
_WORDS: Final = frozenset(_TEXT.split())
_OBJECTS: Final = frozenset(_ASSERTED.split())
# Few other names begin so.
_LETTERS: Final = 4
_BEGINNINGS: Final = frozenset(word[:_LETTERS] for word in _WORDS)
_PART: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")


def is_helper(name: str) -> bool:
    """Whether each word of a function's own name is a helper's."""
    own = name if name.isidentifier() else name[max(map(name.rfind, ".:#>")) + 1 :]
    if own.lstrip("_$")[:_LETTERS].lower() not in _BEGINNINGS:
        return False
    first, *others = [word.lower() for word in _PART.findall(own)]
    return first in _WORDS and all(word in _WORDS or word in _OBJECTS for word in others)
