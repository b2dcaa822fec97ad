"""Functions whose names say that they check, raise, wrap or pass on, not what for: their callers tell problems apart. Pure."""

import re
from functools import lru_cache
from typing import Final

_TEXT: Final = """
    assert assertion check checked ensure require required invariant expect verify validate guard fail failure throw raise panic
    abort never unreachable create make build new error exception wrap wrapper wrapped decorate decorator inner proxy
    execute exec dispatch perform query fetch request send save insert update upsert persist retry attempt safe safely
    unsafe sync async internal impl api text value not null non is that or
"""
_WORDS: Final = frozenset(_TEXT.split())
_WAITING: Final = frozenset({"query", "fetch", "request", "send", "save", "insert", "update", "persist"})
_PART: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")


@lru_cache(maxsize=8192)
def is_helper(name: str, *, awaited: bool) -> bool:
    """Whether each word of a function's own name is one of these; `awaited` where an engine may lose the caller of what waits."""
    words = _PART.findall(name[max(map(name.rfind, ".:#>")) + 1 :])
    known = _WORDS - _WAITING if awaited else _WORDS
    return bool(words) and all(word.lower() in known for word in words)
