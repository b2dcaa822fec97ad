"""msgspec's validation errors in the wording of the ingest API (protocol, section 4.3)."""

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec
from msgspec import inspect

from schemas.errors import Detail

_KINDS: Final = {
    "str": "a string",
    "int": "an integer",
    "float": "a number",
    "bool": "a boolean",
    "array": "an array",
    "object": "an object",
    "null": "null",
}
_FIELD: Final = re.compile(r"Object (?P<what>missing required|contains unknown) field `(?P<name>[^`]*)`\Z")
_BOUND: Final = re.compile(r"Expected `(?:int|float)` (?P<sign>>=|<=) (?P<bound>-?[\d.]+)\Z")
_LENGTH: Final = re.compile(
    r"Expected `(?P<kind>str|array|object)` of length (?P<sign>>=|<=) (?P<bound>\d+)\Z"
)
_PATTERN: Final = re.compile(r"Expected `str` matching regex '(?P<pattern>.*)'\Z", re.DOTALL)
_KIND: Final = re.compile(r"Expected `(?P<kinds>[^`]+)`")
_SEGMENT: Final = re.compile(r"\[[^\]]*\]|[^.\[\]]+")


def detail_of(error: msgspec.ValidationError, kind: type[Any]) -> Detail:
    """The violation as a dotted path and a message; `kind` is the type that was decoded."""
    sentence, _, location = str(error).partition(" - at `")
    path = location.removesuffix("`").removeprefix("$").removeprefix(".")
    if field := _FIELD.match(sentence):
        message = "required" if field["what"] == "missing required" else "unknown field"
        return Detail(f"{path}.{field['name']}" if path else field["name"], message)
    if sentence.startswith("Invalid enum value"):
        return Detail(path, f"expected one of: {', '.join(sorted(map(str, _choices(kind, path))))}")
    return Detail(path, _message(sentence))


def _message(sentence: str) -> str:
    if bound := _BOUND.match(sentence):
        return f"at {'least' if bound['sign'] == '>=' else 'most'} {bound['bound']}"
    if length := _LENGTH.match(sentence):
        if (length["sign"], length["bound"]) == (">=", "1"):
            return "must not be empty"
        unit = "characters" if length["kind"] == "str" else "entries"
        return f"at {'least' if length['sign'] == '>=' else 'most'} {length['bound']} {unit}"
    if pattern := _PATTERN.match(sentence):
        return f"must match {pattern['pattern']}"
    if kinds := _KIND.match(sentence):
        return f"expected {' or '.join([_KINDS.get(name, name) for name in kinds['kinds'].split(' | ')])}"
    return sentence


def _choices(kind: type[Any], path: str) -> list[Any]:
    """The values allowed for the literal at a path."""
    types = list(_alternatives(inspect.type_info(kind)))
    for segment in _SEGMENT.findall(path):
        types = [leaf for child in _children(types, segment) for leaf in _alternatives(child)]
    literals = [leaf for leaf in types if isinstance(leaf, inspect.LiteralType)]
    return [value for literal in literals for value in literal.values if value is not None]


def _alternatives(kind: inspect.Type) -> Iterator[inspect.Type]:
    """The members of a union, without their metadata."""
    if isinstance(kind, inspect.Metadata):
        yield from _alternatives(kind.type)
    elif isinstance(kind, inspect.UnionType):
        for member in kind.types:
            yield from _alternatives(member)
    else:
        yield kind


def _children(types: list[inspect.Type], segment: str) -> Iterator[inspect.Type]:
    for kind in types:
        if isinstance(kind, inspect.StructType):
            yield from [field.type for field in kind.fields if field.encode_name == segment]
        elif isinstance(kind, inspect.ListType):
            yield kind.item_type
        elif isinstance(kind, inspect.DictType):
            yield kind.value_type
