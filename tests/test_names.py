"""One word for one thing: class names are unique, and no name of the product is made of a private word."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.syntax import nodes

ROOT = Path(__file__).parent.parent
ROOMS = (
    *("schemas", "broker", "query", "grouping", "edge", "processors"),
    *("storage", "control", "dashboard", "local", "cli", "svc"),
)


PRIVATE = {
    *(
        "anew",
        "aside",
        "asked",
        "away",
        "cure",
        "cures",
        "due",
        "fault",
        "forms",
        "gone",
        "lasting",
        "mended",
        "mends",
    ),
    *("mend", "pace", "place", "quietly", "said", "sound", "told", "trouble", "turns"),
}
"""Words that names were once made of, where the field has its own: recreated, dead-lettered, requested, unavailable, patch, error, raw,
stored, repaired, flush policy, offset or partition, consistent, valid, known, failure, scheduler."""


def modules() -> Iterator[tuple[str, Sequence[ast.AST]]]:
    """The product's files with their syntax nodes."""
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            yield str(path.relative_to(ROOT)), nodes(path)


def names(module: Sequence[ast.AST]) -> Iterator[tuple[str, int]]:
    """What a file names, with its line: classes, functions, parameters, variables, attributes."""
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


def words(name: str) -> set[str]:
    """The words of a name, in lower case."""
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}


def test_class_names_are_unique() -> None:
    places = defaultdict[str, list[str]](list)
    for file, module in modules():
        for node in module:
            if isinstance(node, ast.ClassDef):
                places[node.name].append(f"{file}:{node.lineno}")
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


def test_no_name_is_made_of_a_private_word() -> None:
    private = [
        f"{file}:{line} {name}"
        for file, module in modules()
        for name, line in names(module)
        if words(name) & PRIVATE
    ]
    assert private == []


def test_the_words_of_a_name_are_seen_however_it_is_written() -> None:
    assert words("_set_ASIDE") == words("SetAside") | {"set"} == {"set", "aside"}
