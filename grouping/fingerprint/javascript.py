"""Frames of JavaScript engines: names of functions without the engine's additions, and the owner of a file's code."""

import re

_ALIAS = re.compile(r" \[as ([^\]]+)\]\Z")
# Engines' words for a function or script without a name: words in brackets, `global code`, `anonymous function`.
# A name has a letter: numbers and dashes are keys of modules and unused parameters.
_NO_NAME = re.compile(r"(?:[\d_]*|anonymous|value|eval|null)\Z|[<(\[{@?]|.* (?:code|function)\Z")
# Callbacks into the app's code; engines show them or not, or name them after the variable.
_CALLBACK_TAKERS_TEXT = """
    map forEach filter reduce reduceRight some every find findIndex findLast sort flatMap then catch finally
    apply call bind
"""
_CALLBACK_TAKERS = frozenset(_CALLBACK_TAKERS_TEXT.split())
_GENERATED_SUFFIX = re.compile(r"(?<=\D)\d{1,2}\Z")
_RUNTIME = re.compile(
    r"\A(?:node:|internal/|<anonymous>|\[native code\]|native\b|native code|eval code|InternalBytecode"
    r"|timers\b|events\b|index \d|"
    r"\?\?\?|<unknown>|async_hooks|task_queues|process/)"
)
_LIBRARY = re.compile(
    r"node_modules|/vendors?[./~-]|\Avendors?[./~-]|webpack/(?:bootstrap|runtime)|/~/|bower_components"
    r"|jspm_packages|/cdn-cgi/"
)


def is_runtime(path: str) -> bool:
    """Whether a file belongs to the engine or the runtime."""
    return _RUNTIME.match(path) is not None


def is_library(path: str) -> bool:
    """Whether a file is a dependency's, regardless of its in-app mark."""
    return _LIBRARY.search(path) is not None


def is_nameless(name: str) -> bool:
    """Whether a name is an engine's word for a function without one."""
    return _NO_NAME.match(name) is not None


def function_name(function: str) -> str:
    """A function's name in the source, without an engine's words before it; empty if the engine made the name."""
    alias = _ALIAS.search(function)
    if alias is not None:
        function = function[: alias.start()]
    # SpiderMonkey: it infers `outer/inner<` and `outer/<` for functions without a name.
    if (
        "/" in function
        or function.endswith(("<", "]"))
        or "<anonymous>" in function
        or (alias is not None and is_nameless(alias[1]))
    ):
        return ""
    if "." in function:
        function = _method(function)
    if is_nameless(function):
        return ""
    return _GENERATED_SUFFIX.sub("", function) if function[-1:].isdigit() else function


def _method(function: str) -> str:
    """`Class.method` is a method; V8 infers `a.b.c` and `lower.name` from an assignment or a call."""
    owner, _, name = function.rpartition(".")
    if name in _CALLBACK_TAKERS and owner.lstrip("_")[:1].islower():
        return ""
    if "." in owner:
        return ""
    return name


def survives_minifying(name: str) -> bool:
    """Whether a name in a build comes from the source: minifiers keep properties, and generate short names."""
    return len(name) >= 5
