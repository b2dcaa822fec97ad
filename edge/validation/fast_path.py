"""The short way of a batch in which nothing is to be refused or mended. Pure; what it doubts takes the way of `edge.validation.validate`.

To read a batch once for where its events lie and once more to decode them costs a fifth of deciding about it. Here they are
cut where the text stands that the first of them begins with. That is a guess, and decoding proves it: JSON can be read in one
way only, so pieces that are whole values with only commas between them are the events. What `edge.validation.validate` asks of each id,
release and time is asked of many at once.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Final

import msgspec
from msgspec import Raw

from edge.validation.flat_event import BoundedEvent, UncheckedEvent
from edge.validation.timestamps import are_utc
from edge.validation.validate import MALFORMED, too_deep
from schemas.limits import Limit
from schemas.nesting import is_deep
from schemas.releases import is_release

_OPENING: Final = b'{"events":[{'
_CLOSING: Final = b"}]}"
_ALIKE: Final = len('{"id":"019')
"""So much of the first event is looked for. The digits in it, the highest of the time in an id, change every two years."""
_ID_LENGTH: Final = 36
_DASHES: Final = (8, 13, 18, 23)
_DIGITS: Final = b"0123456789abcdef"
_USUAL_LENGTH: Final = 200
"""A longer release is looked at anew each time: what is kept must not grow with what strangers send."""
_timestamp: Final = attrgetter("timestamp")


_decode_bounded: Final = msgspec.json.Decoder(BoundedEvent).decode
_decode_any: Final = msgspec.json.Decoder(UncheckedEvent).decode


def cut(body: bytes) -> list[Raw] | None:
    """The pieces of a body that look like the events of a batch, each valid UTF-8; None where there is no telling."""
    if not body.startswith(_OPENING) or not body.endswith(_CLOSING):
        return None
    start, end = len(_OPENING) - len(b"{"), len(body) - len(b"]}")
    border = b"}," + body[start : start + _ALIKE]
    starts, ends = [start], []
    while (found := body.find(border, start, end)) >= 0:
        start = found + len(b"},")
        starts.append(start)
        ends.append(found + len(b"}"))
    ends.append(end)
    if len(starts) > Limit.EVENTS_PER_BATCH.maximum:
        return None
    places = list(zip(starts, ends, strict=True))
    if not body.isascii() and not all(_is_text(body[start:end]) for start, end in places):
        return None
    whole = memoryview(body)
    return [Raw(whole[start:end]) for start, end in places]


def valid_ids(pieces: Iterable[Raw]) -> list[str] | None:
    """The ids of events that a strict project takes as they are; None where one of them isn't, or isn't an event at all."""
    ids: list[str] = []
    releases: set[str] = set()
    times: list[str] = []
    try:
        for piece in pieces:
            event = _decode(piece)
            if event is None:
                return None
            if event.error.cause is not None and too_deep(event.error.cause):
                return None
            ids.append(event.id)
            releases.add(event.release)
            times.append(event.timestamp)
            if event.breadcrumbs:
                times.extend(map(_timestamp, event.breadcrumbs))
    except MALFORMED:
        return None
    valid = are_lower_uuid7s(ids) and all(map(_is_release, releases)) and are_utc(times)
    return ids if valid else None


def _decode(piece: Raw) -> UncheckedEvent | None:
    """The event; None where it is nested too deeply. Raises what msgspec raises."""
    try:
        return _decode_bounded(piece)
    except msgspec.ValidationError:
        return None if is_deep(bytes(piece)) else _decode_any(piece)


def are_lower_uuid7s(ids: Sequence[str]) -> bool:
    """Whether each of these texts of 36 characters matches UUID7_PATTERN without a capital letter."""
    text = "".join(ids).encode("utf-8", "replace")
    dashes = b"-" * len(ids)
    return (
        text.translate(None, _DIGITS) == dashes * len(_DASHES)
        and all(text[place::_ID_LENGTH] == dashes for place in _DASHES)
        and text[14::_ID_LENGTH] == b"7" * len(ids)
        and not text[19::_ID_LENGTH].strip(b"89ab")
    )


def _is_release(text: str) -> bool:
    return _is_usual_release(text) if len(text) <= _USUAL_LENGTH else is_release(text)


# A fleet has few releases at a time.
@lru_cache(maxsize=1000)
def _is_usual_release(text: str) -> bool:
    return is_release(text)


def _is_text(piece: bytes) -> bool:
    if not piece.isascii():
        try:
            piece.decode()
        except UnicodeDecodeError:
            return False
    return True
