"""Frames of Python, Ruby, PHP, Dart and other languages with functions and files."""

import re

# Suffixes of interpreters for anonymous code: its owner is the site.
_NAMELESS = re.compile(
    r"(?:(?:\.<locals>)?\.<(?:lambda|listcomp|dictcomp|setcomp|genexpr|anonymous closure)>"
    r"|(?<=\w) \(\d+ levels\))+\Z"
)
# Interpreters write words in angle brackets for code without a name.
_NO_NAME = re.compile(r"(?:<[^>]*>|\?|null|)\Z")
_COMPREHENSIONS = frozenset({"<listcomp>", "<dictcomp>", "<setcomp>"})
_BLOCK = re.compile(r"\A(?:block (?:\(\d+ levels\) )?in |rescue in |ensure in |anonymous fn/\d+ in |new )")
_LIBRARY = ("site-packages/", "dist-packages/", "/gems/", "/vendor/", ".pub-cache/", "/flutter/", "/deps/")
_RUNTIME = ("<frozen ", "<__array_function__", "dart:", "/lib/python", "/lib/ruby/", "/usr/lib/erlang/")


def is_runtime(path: str) -> bool:
    """Whether a file is the language's own."""
    return path.startswith("<") or any(part in path for part in _RUNTIME)


def is_library(path: str) -> bool:
    """Whether a file is an installed package's, regardless of its in-app mark."""
    return any(part in f"/{path}" for part in _LIBRARY)


def is_comprehension(function: str) -> bool:
    """Whether a frame is a comprehension directly above its owner; Python 3.12 and later have no such frame."""
    return function in _COMPREHENSIONS


def function_name(function: str) -> str:
    """The function's qualified name in the source; empty for the body of a file."""
    name = _BLOCK.sub("", function)
    if name.endswith((">", ")")):
        name = _NAMELESS.sub("", name)
    return "" if _NO_NAME.match(name) else name
