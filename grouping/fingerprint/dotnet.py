"""Names of .NET: the source method of compiler-generated async methods, iterators and lambdas."""

import re

_CLOSURE = re.compile(r"[.+]<>c(?:__DisplayClass[\d_]{1,20})?(?:`\d{1,3})?(?=[.+])")
# `<Load>d__4.MoveNext`, `<Find>b__3_0`, `<Find>g__Best|3_0`, and `<<Find>b__1>d.MoveNext` where one of these is async.
_MADE = re.compile(
    r"[.+](?:<?<(?P<owner>[\w.]+)>(?:b__[\d_]{1,20}|g__(?P<local>\w+)\|[\d_]{1,20})(?:>d(?:__\d{1,10})?)?"
    r"|<(?P<steps>[\w.]+)>d__\d{1,10})(?:`\d{1,3})?(?:[.+]MoveNext(?:\(\))?)?(?=[.+(]|\Z)"
)


def source_name(function: str) -> str:
    """`Type.Method` of a compiler-generated function; other names unchanged."""
    if ">" not in function:
        return function
    return _MADE.sub(_method, _CLOSURE.sub("", function))


def _method(found: re.Match[str]) -> str:
    name = found["owner"] or found["steps"]
    return f".{name}.{found['local']}" if found["local"] else f".{name}"
