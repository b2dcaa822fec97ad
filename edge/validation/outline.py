"""Decodes JSON of any size, only as far as the checks need. Pure.

Decoding a megabyte of `[],[],...` creates 350,000 lists in one go. That takes 20 ms and more, and no other
thread can interrupt it. A typed decoder skips everything else in under 2 ms. The types are derived from the
structs of `schemas.event`: their fields, as many items of a list as show that it is too long, and only the
kind of free-form values.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, defstruct, inspect, structs

from schemas.event import LenientEvent
from schemas.limits import MAX_DETAILS, Limit

_MANY_VALUES: Final = 16_384
"""Decoded in two milliseconds; more than a valid event can have."""
_LEVELS: Final = Limit.CAUSE_DEPTH.maximum + 6
"""An event, its error, one cause more than allowed, and the frames and lines of each."""
Unset = Raw | UnsetType
_validate: Final = msgspec.json.Decoder(Raw).decode
_decode_strings: Final = msgspec.json.Decoder(dict[str, str]).decode
_decode_map: Final = msgspec.json.Decoder(dict[str, Raw]).decode


def has_many_values(text: bytes) -> bool:
    """Whether JSON text may contain more values than should be decoded in one go."""
    return text.count(b",") + text.count(b"[") + text.count(b"{") > _MANY_VALUES


def first_items(limit: int) -> Callable[[bytes | Raw], list[Raw]]:
    """A decoder of a list's items, up to `limit` + 1. It raises the errors of msgspec."""
    decode = msgspec.json.Decoder(items_struct(limit)).decode
    return lambda text: present_items(decode(text))


def items_struct(limit: int) -> type[Struct]:
    """A struct for the first `limit` + 1 items of a list of any length."""
    return defstruct("Items", [(f"item{n}", Unset, UNSET) for n in range(limit + 1)], array_like=True)


def present_items(items: Struct) -> list[Raw]:
    """The items that the list has."""
    return [item for item in structs.astuple(items) if item is not UNSET]


class _Shape:
    """The parts of a value to decode: these fields of an object, these items of a list, all of a map, else the kind."""

    def __init__(self) -> None:
        self.fields: dict[str, _Shape] = {}
        self.item: _Shape | None = None
        self.limit = 0
        self.map = False

    def prepare(self) -> None:
        """Build the decoders, once the fields are known."""
        names = {f"field{n}": name for n, name in enumerate(self.fields)}
        fields = defstruct("Fields", [(name, Unset, UNSET) for name in names], rename=names)
        self._decode = msgspec.json.Decoder(fields).decode
        self.items = first_items(self.limit)

    def read(self, value: Raw, levels: int = _LEVELS) -> Any:
        """The needed parts of a value, which must be valid JSON. Each level scans its text once more."""
        text = bytes(value)
        if text.startswith(b"{"):
            if self.map:
                return _map(text)
            if not self.fields or not levels:
                return {}
            parts = zip(self.fields.items(), structs.astuple(self._decode(text)), strict=True)
            return {name: shape.read(part, levels - 1) for (name, shape), part in parts if part is not UNSET}
        if text.startswith(b"["):
            return [self.item.read(part, levels - 1) for part in self.items(text)] if self.item else []
        try:
            return json.loads(text)
        except ValueError:
            # Python refuses integers of thousands of digits; as floats they are still out of every range.
            return float(text)


def outline(event: bytes) -> Any:
    """The value of an event for `edge.validation.full_check`. Raises the errors of msgspec if the text isn't JSON."""
    text = event.strip(b" \t\r\n")
    # An object needs no extra validation: decoding its struct scans all of it.
    return _EVENT.read(Raw(text) if text.startswith(b"{") else _validate(text))


def _map(text: bytes) -> dict[str, Any]:
    try:
        return dict(_decode_strings(text))
    except msgspec.ValidationError:
        return _first_of_map(_decode_map(text))


def _first_of_map(fields: dict[str, Raw]) -> dict[str, Any]:
    """Fields until there are too many, and more values that aren't strings than are reported."""
    first: dict[str, Any] = {}
    others = 0
    for key, value in fields.items():
        first[key] = _KIND.read(value)
        others += not isinstance(first[key], str)
        if others > MAX_DETAILS and len(first) > Limit.TAG_KEYS.maximum:
            break
    return first


def _shape_of(kinds: list[inspect.Type], known: dict[tuple[type, ...], _Shape]) -> _Shape:
    """The shape of a value of any of these types."""
    flat = list(_flat(kinds))
    key = tuple(kind.cls for kind in flat if isinstance(kind, inspect.StructType))
    if key in known:
        return known[key]
    shape = _Shape()
    if key:
        # Recursion: a cause is an error too.
        known[key] = shape
    fields: dict[str, list[inspect.Type]] = {}
    for kind in flat:
        match kind:
            case inspect.ListType(item_type=item, max_length=int(limit)):
                shape.item, shape.limit = _shape_of([item], known), limit
            case inspect.DictType(value_type=value):
                shape.map = not isinstance(value, inspect.RawType)
            case inspect.StructType():
                if kind.tag_field:
                    fields[kind.tag_field] = []
                for field in kind.fields:
                    fields.setdefault(field.encode_name, []).append(field.type)
    shape.fields = {name: _shape_of(types, known) for name, types in fields.items()}
    shape.prepare()
    return shape


def _flat(kinds: list[inspect.Type]) -> Iterator[inspect.Type]:
    for kind in kinds:
        if isinstance(kind, inspect.UnionType):
            yield from _flat(list(kind.types))
        else:
            yield kind.type if isinstance(kind, inspect.Metadata) else kind


_KIND: Final = _shape_of([], {})
_EVENT: Final = _shape_of([inspect.type_info(LenientEvent)], {})
