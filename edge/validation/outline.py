"""What the checks look at in JSON of any size, read without making a value of the rest. Pure.

Reading a megabyte of `[],[],...` makes 350,000 lists in one stretch that no other thread can interrupt: 20 ms and more. A
decoder that is told what is wanted passes over everything else in under 2 ms. What is wanted is taken from the structs of
`schemas.event`: their fields, of lists as many items as tell that there are too many, of free-form values the kind alone.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, defstruct, inspect, structs

from schemas.event import LenientEvent
from schemas.limits import MAX_DETAILS, Limit

_CROWD: Final = 16_384
"""Values that are read in two milliseconds: more than an event has at every limit of the schema."""
_LEVELS: Final = Limit.CAUSE_DEPTH.maximum + 6
"""An event, its error, causes up to the first too many, and in each of them frames with their lines."""
Unset = Raw | UnsetType
_validate: Final = msgspec.json.Decoder(Raw).decode
_read_texts: Final = msgspec.json.Decoder(dict[str, str]).decode
_read_map: Final = msgspec.json.Decoder(dict[str, Raw]).decode


def is_crowded(text: bytes) -> bool:
    """Whether JSON text may hold more values than should be read in one go."""
    return text.count(b",") + text.count(b"[") + text.count(b"{") > _CROWD


def first_items(most: int) -> Callable[[bytes | Raw], list[Raw]]:
    """A reader of a list's items, up to one more than `most`. It raises what msgspec raises."""
    decode = msgspec.json.Decoder(items_struct(most)).decode
    return lambda text: set_items(decode(text))


def items_struct(most: int) -> type[Struct]:
    """A struct that a list of any length decodes to, with one more item than `most`."""
    return defstruct("Items", [(f"item{n}", Unset, UNSET) for n in range(most + 1)], array_like=True)


def set_items(items: Struct) -> list[Raw]:
    """The items that there were."""
    return [item for item in structs.astuple(items) if item is not UNSET]


class _Shape:
    """What is wanted of a value: of an object these fields, of a list these items, of a map all, of anything else its kind."""

    def __init__(self) -> None:
        self.fields: dict[str, _Shape] = {}
        self.item: _Shape | None = None
        self.most = 0
        self.map = False

    def prepare(self) -> None:
        """Make the readers, once what is wanted is known."""
        names = {f"field{n}": name for n, name in enumerate(self.fields)}
        fields = defstruct("Fields", [(name, Unset, UNSET) for name in names], rename=names)
        self._decode = msgspec.json.Decoder(fields).decode
        self.items = first_items(self.most)

    def read(self, value: Raw, levels: int = _LEVELS) -> Any:
        """The value as far as it is wanted; it is valid JSON already. Each level costs another look at the text."""
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
            # Python refuses to read thousands of digits; as a float they are still out of every range.
            return float(text)


def outline(event: bytes) -> Any:
    """The value of an event for `edge.validation.full_check`. Raises what msgspec raises where the text isn't JSON."""
    text = event.strip(b" \t\r\n")
    # Of an object everything is looked at once: its fields stand in a struct.
    return _EVENT.read(Raw(text) if text.startswith(b"{") else _validate(text))


def _map(text: bytes) -> dict[str, Any]:
    try:
        return dict(_read_texts(text))
    except msgspec.ValidationError:
        return _first_of_map(_read_map(text))


def _first_of_map(fields: dict[str, Raw]) -> dict[str, Any]:
    """As many fields as tell that there are too many, and until as many aren't texts as are told of."""
    first: dict[str, Any] = {}
    others = 0
    for key, each in fields.items():
        first[key] = _KIND.read(each)
        others += not isinstance(first[key], str)
        if others > MAX_DETAILS and len(first) > Limit.TAG_KEYS.maximum:
            break
    return first


def _shape_of(kinds: list[inspect.Type], known: dict[tuple[type, ...], _Shape]) -> _Shape:
    """What is wanted where any of these may stand."""
    flat = list(_flat(kinds))
    key = tuple(each.cls for each in flat if isinstance(each, inspect.StructType))
    if key in known:
        return known[key]
    shape = _Shape()
    if key:
        # A cause is an error again.
        known[key] = shape
    wanted: dict[str, list[inspect.Type]] = {}
    for each in flat:
        match each:
            case inspect.ListType(item_type=item, max_length=int(most)):
                shape.item, shape.most = _shape_of([item], known), most
            case inspect.DictType(value_type=value):
                shape.map = not isinstance(value, inspect.RawType)
            case inspect.StructType():
                if each.tag_field:
                    wanted[each.tag_field] = []
                for field in each.fields:
                    wanted.setdefault(field.encode_name, []).append(field.type)
    shape.fields = {name: _shape_of(types, known) for name, types in wanted.items()}
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
