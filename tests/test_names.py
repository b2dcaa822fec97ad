"""One word for one thing: class names of the product are unique, and no name is made of a private word."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.syntax import nodes

ROOT = Path(__file__).parent.parent
ROOMS = (
    *("schemas", "broker", "runtime", "query", "grouping", "edge", "processors"),
    *("storage", "sourcemaps", "control", "rebuild", "notify", "dashboard", "local", "cli", "svc"),
)

LOGGING_ROOMS = (
    *("schemas", "broker", "runtime", "edge", "processors", "storage", "rebuild"),
    *("control", "notify", "dashboard", "cli"),
)
"""Rooms whose log calls have an event key."""
LOG_METHODS = {"debug", "info", "warning", "error", "exception", "critical", "log"}

PRIVATE = {
    *("anew", "aside", "asked", "away", "cure", "cures", "forms", "gone", "lasting"),
    *("mend", "mended", "mends", "pace", "place"),
    *("quietly", "said", "sound", "told", "trouble", "turns"),
}
"""Words that names were once made of, where the field has its own.

The field's words are: recreated, dead-lettered, requested, unavailable, patch, raw, stored, repaired, flush
policy, offset or partition, consistent, valid, known, failure, scheduler."""


def modules(*rooms: str) -> Iterator[tuple[str, Sequence[ast.AST]]]:
    """The files of these rooms with their syntax nodes."""
    for room in rooms:
        for path in sorted((ROOT / room).rglob("*.py")):
            yield str(path.relative_to(ROOT)), nodes(path)


def names(module: Sequence[ast.AST]) -> Iterator[tuple[str, int]]:
    """The names that a file gives, each with its line.

    They are those of classes, functions, parameters, variables and attributes, and texts such as names of
    metrics.
    """
    for node in module:
        match node:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                yield node.name, node.lineno
            case ast.arg():
                yield node.arg, node.lineno
            case ast.Name(ctx=ast.Store()):
                yield node.id, node.lineno
            case ast.Attribute(ctx=ast.Store()):
                yield node.attr, node.lineno
            case ast.Constant(value=str(text)) if re.fullmatch(r"[a-z0-9]+(_[a-z0-9]+)+", text):
                yield text, node.lineno


def log_events() -> dict[str, list[str]]:
    """The places of log calls by their event key, empty for calls without one."""
    places = defaultdict[str, list[str]](list)
    for file, module in modules(*LOGGING_ROOMS):
        for node in module:
            match node:
                case ast.Call(
                    func=ast.Attribute(value=ast.Name("log" | "FAUST_LOG"), attr=method), keywords=keywords
                ) if method in LOG_METHODS:
                    extra = "".join(ast.unparse(k.value) for k in keywords if k.arg == "extra")
                    found = re.search(r"'event': '([a-z]+(?:_[a-z]+)+)'", extra)
                    places[found[1] if found else ""].append(f"{file}:{node.lineno}")
    return places


def words(name: str) -> set[str]:
    """The words of a name, in lower case."""
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}


def test_class_names_are_unique() -> None:
    places = defaultdict[str, list[str]](list)
    for file, module in modules(*ROOMS):
        for node in module:
            if isinstance(node, ast.ClassDef):
                places[node.name].append(f"{file}:{node.lineno}")
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


def test_no_name_is_made_of_a_private_word() -> None:
    private = [
        f"{file}:{line} {name}"
        for file, module in modules(*ROOMS, "tests", "bench")
        for name, line in names(module)
        # Names of tests are sentences.
        if words(name) & PRIVATE and not name.startswith("test_")
    ]
    assert private == []


def test_each_log_call_has_its_own_event_key() -> None:
    events = log_events()
    assert events["insert_retried"]
    assert {event: places for event, places in events.items() if not event or len(places) > 1} == {}


def test_documented_log_events_exist() -> None:
    page = (ROOT / "docs/operate/monitor.md").read_text()
    documented = re.findall(
        r"^\| `([a-z_]+)` \|", page.partition("## Log events")[2].partition("\n## ")[0], re.MULTILINE
    )
    assert documented
    assert set(documented) <= log_events().keys()


def test_no_table_or_column_is_made_of_a_private_word() -> None:
    migrations = {path.name: path.read_text() for path in (ROOT / "storage/tables/migrations").glob("*.sql")}
    assert migrations
    private = [
        f"{file} {name}"
        for file, sql in migrations.items()
        for name in re.findall(r"\w+", re.sub(r"--.*|'[^']*'", "", sql))
        if words(name) & PRIVATE
    ]
    assert private == []


def test_the_words_of_a_name_are_seen_however_it_is_written() -> None:
    assert words("_set_ASIDE") == words("SetAside") | {"set"} == {"set", "aside"}
