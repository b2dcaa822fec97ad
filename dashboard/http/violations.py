"""What msgspec found wrong in a request, in the words that the ingest interface has for it (protocol, section 4.3)."""

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
    """The violation as a dotted path and a sentence; `kind` is what was to be decoded."""
    sentence, _, place = str(error).partition(" - at `")
    path = place.removesuffix("`").removeprefix("$").removeprefix(".")
    if field := _FIELD.match(sentence):
        told = "required" if field["what"] == "missing required" else "is no field here"
        return Detail(f"{path}.{field['name']}" if path else field["name"], told)
    if sentence.startswith("Invalid enum value"):
        return Detail(path, f"expected one of: {', '.join(sorted(map(str, _choices(kind, path))))}")
    return Detail(path, _said(sentence))


def _said(sentence: str) -> str:
    if bound := _BOUND.match(sentence):
        return f"at {'least' if bound['sign'] == '>=' else 'most'} {bound['bound']}"
    if length := _LENGTH.match(sentence):
        if (length["sign"], length["bound"]) == (">=", "1"):
            return "must not be empty"
        parts = "characters" if length["kind"] == "str" else "entries"
        return f"at {'least' if length['sign'] == '>=' else 'most'} {length['bound']} {parts}"
    if pattern := _PATTERN.match(sentence):
        return f"must have the form {pattern['pattern']}"
    if found := _KIND.match(sentence):
        return f"expected {' or '.join([_KINDS.get(one, one) for one in found['kinds'].split(' | ')])}"
    return sentence


def _choices(kind: type[Any], path: str) -> list[Any]:
    """The values that the literal at a path takes."""
    found = [inspect.type_info(kind)]
    for segment in _SEGMENT.findall(path):
        found = [inner for one in found for inner in _inside(one, segment)]
    return [
        value
        for one in found
        for bare in _bare(one)
        if isinstance(bare, inspect.LiteralType)
        for value in bare.values
        if value is not None
    ]


def _bare(kind: inspect.Type) -> Iterator[inspect.Type]:
    """The alternatives of a type, without what is said about them."""
    if isinstance(kind, inspect.Metadata):
        yield from _bare(kind.type)
    elif isinstance(kind, inspect.UnionType):
        for one in kind.types:
            yield from _bare(one)
    else:
        yield kind


def _inside(kind: inspect.Type, segment: str) -> Iterator[inspect.Type]:
    for one in _bare(kind):
        if isinstance(one, inspect.StructType):
            yield from [field.type for field in one.fields if field.encode_name == segment]
        elif isinstance(one, inspect.ListType):
            yield one.item_type
        elif isinstance(one, inspect.DictType):
            yield one.value_type
