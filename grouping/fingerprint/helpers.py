"""Functions whose names say that they check, raise, wrap or pass on, but not what for. Pure.

Their callers tell problems apart.
"""

import re
from functools import lru_cache
from typing import Final

# Names of assertions and failures in JavaScript, the JVM's languages, .NET, Python, Go and Rust; then words
# for functions that create or pass on.
_TEXT: Final = """
    assert check require verify validate ensure expect invariant unreachable fail throw raise panic abort
    error create execute wrapper
"""
# What is asserted, never first.
_OBJECTS: Final = frozenset({"never", "not", "null", "text"})
_WORDS: Final = frozenset(_TEXT.split())
_WAITING: Final = frozenset({"query", "save", "insert", "update"})
_PART: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")


@lru_cache(maxsize=8192)
def is_helper(name: str, *, awaited: bool) -> bool:
    """Whether each word of a function's own name is a helper's.

    `awaited` says that an engine may lose the caller of a function that waits; then `_WAITING` doesn't count.
    """
    words = [word.lower() for word in _PART.findall(name[max(map(name.rfind, ".:#>")) + 1 :])]
    return (
        bool(words)
        and words[0] not in _OBJECTS
        and all(word in _WORDS or word in _OBJECTS or (word in _WAITING and not awaited) for word in words)
    )
