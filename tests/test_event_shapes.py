"""The shapes in which parts of an event are decoded are those that the docstring of `schemas.event` lists."""

import ast
import importlib
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any, get_args

import msgspec
from msgspec import Struct, structs

from dashboard.view.event_sections import KNOWN_FIELDS
from edge.validation.repair import INTEGER_FIELDS
from schemas import event
from tests.syntax import nodes
from tests.test_boundaries import MAY_IMPORT, ROOT, modules, top

WIRE = [
    kind
    for kind in vars(event).values()
    if isinstance(kind, type) and issubclass(kind, Struct) and kind.__module__ == event.__name__
]
DERIVED = "edge.validation.outline"
"""Its shapes are made of the structs of `schemas.event`."""
Decoded = list[tuple[str, Any]]
"""The module, and the type that it decodes."""


def imported() -> Iterator[str]:
    """The modules of the product but its scripts, each after its import."""
    for name in modules():
        if top(name) in MAY_IMPORT and top(name) != "svc" and not name.endswith(("__main__", ".tether")):
            importlib.import_module(name)
            yield name


def decoders() -> Decoded:
    """The types that the product makes decoders of while its modules are imported.

    It works only in a process that has imported none of them yet.
    """
    made: Decoded = []
    decoder: Callable[..., Any] = msgspec.json.Decoder

    def recorded(*kinds: Any, **options: Any) -> Any:
        module = sys._getframe(1).f_globals["__name__"]
        made.extend((module, kind) for kind in (*kinds, options.get("type")))
        return decoder(*kinds, **options)

    msgspec.json.Decoder = recorded  # type: ignore[assignment,misc]
    return [*(each for name in imported() for each in decoded_in(name)), *made]


def decoded_in(name: str) -> Decoded:
    """The types that a module names in calls of `decode`."""
    found = []
    for node in nodes(modules()[name]):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "decode":
            for given in node.keywords:
                named = ast.unparse(given.value)
                if given.arg == "type" and hasattr(sys.modules[name], named):
                    found.append((name, getattr(sys.modules[name], named)))
    return found


def structs_in(kind: Any, known: tuple[type[Struct], ...] = ()) -> Iterator[type[Struct]]:
    """The structs of a type, and those of their fields."""
    if isinstance(kind, type) and issubclass(kind, Struct) and kind not in known:
        yield kind
        for field in structs.fields(kind):
            yield from structs_in(field.type, (*known, kind))
    for argument in get_args(kind):
        yield from structs_in(argument, known)


def names(kind: type[Struct]) -> list[str]:
    """The names of a struct's fields on the wire."""
    return [field.encode_name for field in structs.fields(kind)]


def is_part(kind: type[Struct]) -> bool:
    """Whether a struct looks like a part of the event: most of its names are those of one of the event's structs."""
    own = set(names(kind))
    shared = max(len(own & set(names(wire))) for wire in WIRE)
    return not kind.__struct_config__.array_like and shared >= 2 and 2 * shared >= len(own)


def shapes(decoded: Decoded) -> dict[str, str]:
    """The fields of each shape that doesn't follow the event's structs by itself, and of those that it is made of."""
    found = {
        part
        for module, kind in decoded
        for root in structs_in(kind)
        if module != DERIVED and is_part(root)
        for part in structs_in(root)
    }
    found |= {
        base for part in found for base in part.__mro__ if base not in {Struct, object, *Struct.__mro__}
    }
    return {
        f"{part.__module__}.{part.__qualname__}": " ".join(names(part))
        for part in found
        if not issubclass(part, tuple(WIRE))
    }


def listed() -> dict[str, str]:
    """The shapes in the docstring, with their fields."""
    found, module = {}, ""
    for line in (event.__doc__ or "").splitlines():
        if head := re.match(r" {4}([a-z_.]+): ", line):
            module = head[1]
        elif row := re.match(r" {8}(\w+) +(\w.*)", line):
            found[f"{module}.{row[1]}"] = row[2]
    return found


def test_every_shape_in_which_an_event_is_decoded_is_listed_with_its_fields() -> None:
    program = (
        "import json; from tests import test_event_shapes as t; print(json.dumps(t.shapes(t.decoders())))"
    )
    done = subprocess.run([sys.executable, "-P", "-c", program], cwd=ROOT, capture_output=True, check=True)
    assert listed() == json.loads(done.stdout)


def test_shape_that_is_not_listed_is_found() -> None:
    class Part(Struct):
        platform: str
        release: str
        own: int

    class Other(Struct):
        platform: str
        events: int

    found = shapes([("somewhere", list[Part]), ("somewhere", Other)])
    assert list(found.values()) == ["platform release own"]


def is_integer(kind: Any) -> bool:
    """Whether a field has integers."""
    return kind is int or any(map(is_integer, get_args(kind)))


def test_lists_of_names_that_the_docstring_mentions_follow_the_event() -> None:
    integers = {
        field.encode_name for kind in WIRE for field in structs.fields(kind) if is_integer(field.type)
    }
    assert set(INTEGER_FIELDS) == integers
    assert set(names(event.Event)) == KNOWN_FIELDS
