"""Frames of JavaScript engines: names of functions and files, without parts that depend on engine or build."""

import re
from functools import lru_cache

# V8 since 9: `get x [as y]`, `async f`, `new F`; SpiderMonkey: `async*f`.
_DECORATION = re.compile(
    r"\A(?:async\*|async |new |get |set |static |bound |Promise\*|setTimeout handler\*)+"
)
_ALIAS = re.compile(r" \[as ([^\]]+)\]\Z")
ANONYMOUS = frozenset(
    {
        "",
        "?",
        "<anonymous>",
        "anonymous",
        "(anonymous)",
        "(anonymous function)",
        "Anonymous function",
        "value",
        "{anonymous}",
        "global code",
        "Global code",
        "eval",
        "eval code",
        "module code",
        "<global>",
        "null",
        "Object.<anonymous>",
        "<unknown>",
        "<lambda>",
        "(unknown)",
        "[anonymous]",
        "@",
        "<module>",
    }
)
# Callbacks into the app's code; engines show them or not, or name them after the variable.
_CALLBACK_TAKERS = frozenset(
    {
        "map",
        "forEach",
        "filter",
        "reduce",
        "reduceRight",
        "some",
        "every",
        "find",
        "findIndex",
        "findLast",
        "sort",
        "flatMap",
        "then",
        "catch",
        "finally",
        "apply",
        "call",
        "bind",
    }
)
_GENERATED_SUFFIX = re.compile(r"(?<=\D)\d{1,2}\Z")
_SEPARATORS = re.compile(r"([.\-_~])")
_HEX_HASH = re.compile(r"(?=[a-fA-F]*\d)[0-9a-fA-F]{6,64}\Z")
_MIXED_HASH = re.compile(r"(?=[^\d]*\d)(?=[^A-Z]*[A-Z])[0-9A-Za-z]{8,24}\Z")
# Eight letters with a capital inside, after a dash: by chance a hash of Vite has no digit. Too weak to call
# the file built.
_LETTERS_HASH = re.compile(r"(?=[A-Za-z][a-z]*[A-Z])(?=[^a-z]*[a-z])[A-Za-z]{8}\Z")
# Vite's hashes are base64url: every fifth has a dash or an underscore inside. Source texts are seldom named
# so, and not by `.ts`.
_DASHED_HASH = re.compile(
    r"-(?=[\w-]{0,7}[_-])(?=[\w-]{0,7}[a-z])(?=[\w-]{0,7}[A-Z])(?=[\w-]{0,7}\d)[\w-]{8}(?=\.(?:m?js|css)\Z)"
)
# A page with a script inside is named by its address, a worker made of a blob by a uuid of the session.
_ID = re.compile(
    r"(?:\d+|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|(?=[a-f]*\d)[0-9a-f]{8,64})\Z",
    re.IGNORECASE,
)
_SHORTEST_HASH = 6
# No file's own name is longer.
_NAME_CHARACTERS = 120
_NUMBERED_CHUNK = re.compile(r"\A\d+(?=\.)")
_BUNDLE = re.compile(r"(?:\.jsbundle|\.bundle|\.android\.bundle|\.ios\.bundle)\Z")
_ORIGIN = re.compile(r"\A[a-zA-Z][a-zA-Z0-9+.-]{1,30}://[^/]*")
_PACKAGE = re.compile(r"node_modules/((?:@[^/]+/)?[^/]+)")
_RUNTIME = re.compile(
    r"\A(?:node:|internal/|<anonymous>|\[native code\]|native\b|native code|eval code|InternalBytecode"
    r"|timers\b|events\b|index \d|"
    r"\?\?\?|<unknown>|async_hooks|task_queues|process/)"
)
_LIBRARY = re.compile(
    r"node_modules|/vendors?[./~-]|\Avendors?[./~-]|webpack/(?:bootstrap|runtime)|/~/|bower_components"
    r"|jspm_packages|/cdn-cgi/"
)
_LIBRARY_HINTS = (
    "node_modules",
    "vendor",
    "webpack/",
    "/~/",
    "bower_components",
    "jspm_packages",
    "/cdn-cgi/",
)
# Positions: source lines are never this long; a line this long at the top of a file is a build's.
_FAR_COLUMN = 1000
_FIRST_LINES = 3
_LONG_LINE = 300
# Metro serves developers an unminified bundle, with lines and names.
_UNMINIFIED = "dev=true"


def is_runtime(path: str) -> bool:
    """Whether a file belongs to the engine or the runtime."""
    return _RUNTIME.match(path) is not None


def is_library(path: str) -> bool:
    """Whether a file is a dependency's, regardless of its in-app mark."""
    return any(hint in path for hint in _LIBRARY_HINTS) and _LIBRARY.search(path) is not None


def is_minified(path: str, line: int, column: int) -> bool:
    """Whether a frame points into a build.

    Its position is one that source text can't have, or its file name is typical of bundlers.
    """
    if column >= _FAR_COLUMN or (line <= _FIRST_LINES and column >= _LONG_LINE) or ".min." in path:
        return True
    return _is_built(path)


@lru_cache(maxsize=1024)
def _is_built(path: str) -> bool:
    name = _base_name(path)
    if _BUNDLE.search(name):
        return _UNMINIFIED not in path
    return not _ID.match(name) and any(_is_hash(part) for part in _SEPARATORS.split(name)[2::2])


def function_name(function: str) -> str:
    """A function's name in the source; empty if the engine generated it."""
    if function in ANONYMOUS:
        return ""
    alias = _ALIAS.search(function) if function.endswith("]") else None
    if alias is not None:
        function = function[: alias.start()]
        if alias.group(1) in ANONYMOUS:
            return ""
    function = _DECORATION.sub("", function).strip()
    # SpiderMonkey: `outer/inner<` and `outer/<` are what it infers for functions without a name.
    if "/" in function or function.endswith("<"):
        return ""
    if "<anonymous>" in function or function.endswith("]"):
        return ""
    if "." in function:
        function = _DECORATION.sub("", _method(function))
    if function in ANONYMOUS:
        return ""
    return _GENERATED_SUFFIX.sub("", function) if function[-1:].isdigit() else function


def _method(function: str) -> str:
    """`Class.method` is a method; `a.b.c` and `lower.name` are what V8 infers from an assignment or a call."""
    owner, _, name = function.rpartition(".")
    if name in _CALLBACK_TAKERS and owner.lstrip("_")[:1].islower():
        return ""
    if "." in owner:
        return ""
    return name


def file_name(path: str) -> str:
    """The last part of a path or address, without query, content hash, id or platform.

    All bundles have the same name.
    """
    package = _PACKAGE.search(path) if "node_modules" in path else None
    name = _base_name(path)
    if _BUNDLE.search(name):
        return "bundle"
    if _ID.match(name):
        return _page_name(path)
    name = _NUMBERED_CHUNK.sub("", _without_hash(name))
    return f"{package[1]}/{name}" if package else name


def _page_name(path: str) -> str:
    """An address that ends in an id; the part before the id identifies the page."""
    folder = bare_path(path).rpartition("/")[0].rpartition("/")[2]
    return f"{folder}/*" if folder and not path.startswith("blob:") and not _ID.match(folder) else "*"


def bare_path(path: str) -> str:
    """A path or the path of an address, without query and fragment."""
    return _ORIGIN.sub("", path.partition("?")[0].partition("#")[0]).rstrip("/\\")


def _base_name(path: str) -> str:
    path = bare_path(path)
    name = path[max(path.rfind("/"), path.rfind("\\")) + 1 :]
    return name.partition(":")[0][-_NAME_CHARACTERS:]


def survives_minifying(name: str) -> bool:
    """Whether a name in a build comes from the source: minifiers keep properties, and generate short names."""
    return len(name) >= 5


def _without_hash(name: str) -> str:
    """`main.5f3a2b1c.js` and `index-BxK2s9aQ.js` without the parts that change between builds."""
    if "-" in name:
        name = _DASHED_HASH.sub("", name)
    parts = _SEPARATORS.split(name)
    kept = ["" if len(parts) > 1 and _HEX_HASH.match(parts[0]) else parts[0]]
    for separator, part in zip(parts[1::2], parts[2::2], strict=True):
        if not _is_hash(part) and not (separator == "-" and _LETTERS_HASH.match(part)):
            kept.append(separator + part)
    return "".join(kept)


def _is_hash(part: str) -> bool:
    return len(part) >= _SHORTEST_HASH and (_HEX_HASH.match(part) or _MIXED_HASH.match(part)) is not None
