"""The fast path: one typed decode says that events are valid, but for the case of their ids. Pure.

All others take the full path of `edge.validation.validate`, whose verdict is final.

Finding the events of a batch with a decoder, before each is decoded, costs a fifth of validation. Here the
body is sliced wherever the beginning of its first event occurs again. That is a guess, and decoding proves
it: JSON has only one reading, so slices that are complete values with only commas between them are the
events. Ids, releases and timestamps are checked together.
"""

import re
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from operator import attrgetter
from types import UnionType
from typing import Annotated, Any, Final, Union, cast, get_args, get_origin

import msgspec
from msgspec import NODEFAULT, Meta, Raw, Struct, defstruct, structs

from edge.validation import repair
from edge.validation.timestamps import are_utc
from schemas import event as schema
from schemas.limits import Limit
from schemas.nesting import is_deep
from schemas.releases import is_release

ValidEvent = tuple[str, bytes | Raw]
"""An event's id in lower case and the bytes to forward."""

MALFORMED: Final = (msgspec.DecodeError, UnicodeDecodeError)
"""Errors of msgspec for malformed bytes; RecursionError if their depth wasn't checked before."""
_OPENING: Final = b'{"events":[{'
_CLOSING: Final = b"}]}"
_PREFIX_LENGTH: Final = len('{"id":"019')
"""The part of the first event that is searched for. Its digits, the highest of the time in an id, change
every two years."""
_ID_LENGTH: Final = 36
_MAX_CACHED_RELEASE_LENGTH: Final = 200
"""Longer releases are not cached: clients must not be able to grow the cache."""
_FLAT: Final = str | int | float | bool | None
_timestamp: Final = attrgetter("timestamp")
_Id = Annotated[str, Meta(min_length=_ID_LENGTH, max_length=_ID_LENGTH)]


class UncheckedEvent(schema.Event, frozen=True, kw_only=True, gc=False):
    """The event without the pattern of its id, which costs a tenth of the decoding."""

    id: _Id


class UncheckedLenientEvent(schema.LenientEvent, frozen=True, kw_only=True, gc=False):
    """The same of a lenient project's event."""

    id: _Id


@cache
def bounded(kind: type[Struct]) -> type[Struct]:
    """The struct with flat free-form values and without unknown fields.

    Its type bounds its depth, and most events are of this form. Other events may hold values of any depth in
    fields that a decoder skips, so the depth of their text must be checked.
    """
    name = f"Flat{kind.__name__}"
    fields = []
    for field in structs.fields(kind):
        # A cause is an error too, whose struct is not defined yet.
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
        return Union[tuple(map(_flat, arguments))]  # noqa: UP007 - built at run time
    if origin in {dict, list}:
        return origin[tuple(map(_flat, arguments))]
    return bounded(kind) if isinstance(kind, type) and issubclass(kind, Struct) else kind


def slice_events(body: bytes) -> list[Raw] | None:
    """The slices of a body that look like the events of a batch, each valid UTF-8.

    None if the body doesn't look like a usual batch.
    """
    if not body.startswith(_OPENING) or not body.endswith(_CLOSING):
        return None
    start, end = len(_OPENING) - len(b"{"), len(body) - len(b"]}")
    separator = b"}," + body[start : start + _PREFIX_LENGTH]
    starts, ends = [start], []
    while (match := body.find(separator, start, end)) >= 0:
        start = match + len(b"},")
        starts.append(start)
        ends.append(match + len(b"}"))
    ends.append(end)
    if len(starts) > Limit.EVENTS_PER_BATCH.maximum:
        return None
    bounds = list(zip(starts, ends, strict=True))
    if not body.isascii() and not all(_is_utf8(body[start:end]) for start, end in bounds):
        return None
    view = memoryview(body)
    return [Raw(view[start:end]) for start, end in bounds]


class FastPath:
    """The fast path of one strictness: how its events are decoded, and the forms of ids and releases."""

    def __init__(self, kind: type[schema.Event], id_pattern: str, is_release: Callable[[str], bool]) -> None:
        self._decode_bounded = msgspec.json.Decoder(cast("type[schema.Event]", bounded(kind))).decode
        self._decode_any = msgspec.json.Decoder(kind).decode
        self._match_ids = re.compile(f"(?:{id_pattern[1:-1]})*+").fullmatch
        self._is_release = is_release

    def valid_events(self, slices: Sequence[bytes | Raw]) -> list[ValidEvent] | None:
        """The events, if all are accepted without a repair but that of an id's case; else None.

        Each text must be UTF-8; the decode proves that it is one whole event.
        """
        ids: list[str] = []
        releases: set[str] = set()
        times: list[str] = []
        try:
            for text in slices:
                event = self._decode(text)
                if event is None:
                    return None
                if event.error.cause is not None and too_deep(event.error.cause):
                    return None
                ids.append(event.id)
                releases.add(event.release)
                times.append(event.timestamp)
                if event.breadcrumbs:
                    times.extend(map(_timestamp, event.breadcrumbs))
        except (*MALFORMED, RecursionError):
            return None
        if not (self.are_ids(ids) and all(map(self._is_release, releases)) and are_utc(times)):
            return None
        return list(map(in_lower_case, ids, slices))

    def _decode(self, text: bytes | Raw) -> schema.Event | None:
        """The event; None if it is nested too deeply. Raises MALFORMED."""
        try:
            return self._decode_bounded(text)
        except msgspec.ValidationError:
            event = self._decode_any(text)
            return None if is_deep(bytes(text)) else event

    def are_ids(self, ids: Sequence[str]) -> bool:
        """Whether each of these texts of 36 characters matches the pattern."""
        return self._match_ids("".join(ids)) is not None


def in_lower_case(event_id: str, event: bytes | Raw) -> ValidEvent:
    """An event with its id in lower case."""
    lower = event_id.lower()
    return (lower, event) if lower == event_id else (lower, repair.with_id(event, event_id))


def too_deep(cause: schema.Error | schema.LenientError | None) -> bool:
    """Whether an error has more causes than the limit."""
    depth = 0
    while cause is not None:
        depth += 1
        cause = cause.cause
    return depth > Limit.CAUSE_DEPTH.maximum


def _is_release(text: str) -> bool:
    return _is_cached_release(text) if len(text) <= _MAX_CACHED_RELEASE_LENGTH else is_release(text)


# A fleet has few releases at a time.
@lru_cache(maxsize=1000)
def _is_cached_release(text: str) -> bool:
    return is_release(text)


def _is_utf8(text: bytes) -> bool:
    if not text.isascii():
        try:
            text.decode()
        except UnicodeDecodeError:
            return False
    return True


STRICT: Final = FastPath(UncheckedEvent, schema.UUID7_PATTERN, _is_release)
LENIENT: Final = FastPath(UncheckedLenientEvent, schema.UUID_PATTERN, bool)
"""Any text that `LenientRelease` admits is a release."""
