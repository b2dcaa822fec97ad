"""The event of `schemas.event` when it has nothing but declared fields and flat free-form values: its type says how deep it is.

Most events are like this. Whatever else an event holds, a decoder may pass over it at any depth, and its text has to be looked at.
"""

from functools import cache
from types import UnionType
from typing import Annotated, Any, Final, Union, cast, get_args, get_origin

from msgspec import NODEFAULT, Meta, Raw, Struct, defstruct, structs

from schemas import event

_ID_LENGTH: Final = 36
_FLAT: Final = str | int | float | bool | None


class UncheckedEvent(event.Event, frozen=True, kw_only=True, gc=False):
    """The event without the pattern of its id, which costs a tenth of decoding it."""

    id: Annotated[str, Meta(min_length=_ID_LENGTH, max_length=_ID_LENGTH)]


@cache
def _closed(kind: type[Struct]) -> type[Struct]:
    """The struct without unknown fields, nor values of any depth."""
    name = f"Flat{kind.__name__}"
    fields = []
    for field in structs.fields(kind):
        # A cause is an error again, which isn't made yet.
        flat = f"{name} | None" if kind in get_args(field.type) else _flat(field.type)
        if flat != field.type:
            fields.append((field.name, flat, *([] if field.default is NODEFAULT else [field.default])))
    config = kind.__struct_config__
    globals()[name] = made = defstruct(
        name,
        fields,
        bases=(kind,),
        module=__name__,
        tag_field=config.tag_field,
        tag=config.tag,
        rename={field.name: field.encode_name for field in structs.fields(kind)},
        frozen=True,
        kw_only=True,
        gc=False,
        forbid_unknown_fields=True,
    )
    return made


def _flat(kind: Any) -> Any:
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is Raw:
        return _FLAT
    if origin is Annotated:
        return Annotated[(_flat(arguments[0]), *arguments[1:])]
    if origin in {Union, UnionType}:
        return Union[tuple(map(_flat, arguments))]  # noqa: UP007 - made at run time
    if origin in {dict, list}:
        return origin[tuple(map(_flat, arguments))]
    return _closed(kind) if isinstance(kind, type) and issubclass(kind, Struct) else kind


BoundedEvent: Final = cast("type[UncheckedEvent]", _closed(UncheckedEvent))
"""The same, no deeper than its causes."""
