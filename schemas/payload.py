"""An event's bytes as they are carried and stored: compressed once, alone, with a shared dictionary.

One compression at the edge replaces those of two topics and of the table, and any single event can be read back without its
neighbours. A frame names its dictionary; dictionaries are never changed, only added (`docs/decisions/payloads.md`).
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Final

import zstandard

from schemas.errors import BadPayload, MissingDictionary
from schemas.payload_dictionaries import FIRST_OWN, ID_BASE, LAST, Dictionaries

__all__ = ["ID_BASE", "BadPayload", "MissingDictionary", "compress", "decompress", "use_dictionaries"]

OWN_LEVEL: Final = 3
"""With a dictionary of the fleet's own events, level 3 costs what level 1 does without: most of an event is a match."""
SHIPPED_LEVEL: Final = 1
_HEAD: Final = 7
"""Magic number, descriptor and dictionary id of a frame that we made."""
MAX_EVENT_BYTES: Final = 4 * 1024 * 1024
"""Most that one frame may inflate to: a 1 MB event with its surrogates repaired stays far below."""

_dictionaries = Dictionaries()


def use_dictionaries(folder: str) -> None:
    """Where this process finds a deployment's own dictionaries (SVC_PAYLOAD_DICTIONARIES, '' for none).

    Called once, at a process's start. Raises BadSetting where the folder isn't there or a dictionary in it is damaged.
    """
    found = Dictionaries(Path(folder) if folder else None)
    found.check()
    _dictionaries.folder = found.folder
    for cached in (_compress, _decompress):
        cached.cache_clear()
    _known_heads.clear()


def compressor(content: bytes, level: int) -> zstandard.ZstdCompressor:
    """What makes frames with a dictionary of these bytes."""
    dictionary = zstandard.ZstdCompressionDict(content)
    dictionary.precompute_compress(level=level)
    return zstandard.ZstdCompressor(
        dict_data=dictionary, level=level, write_checksum=False, write_dict_id=True, write_content_size=True
    )


def number_of(frame: bytes) -> int:
    """The number of the frame's dictionary. Raises BadPayload where it can't be one of ours."""
    try:
        number = zstandard.get_frame_parameters(frame).dict_id - ID_BASE
    except zstandard.ZstdError as error:
        raise BadPayload(str(error)) from None
    if not 1 <= number <= LAST:
        raise BadPayload("a frame of no dictionary of ours")
    return number


@cache
def _compress() -> Callable[[bytes], bytes]:
    number = _dictionaries.newest()
    level = OWN_LEVEL if number >= FIRST_OWN else SHIPPED_LEVEL
    return compressor(_dictionaries.content(number), level).compress


@cache
def _decompress(number: int) -> Callable[..., bytes]:
    # A failure isn't remembered: the file may be supplied while the process runs.
    dictionary = zstandard.ZstdCompressionDict(_dictionaries.content(number))
    return zstandard.ZstdDecompressor(dict_data=dictionary).decompress


_known_heads: dict[bytes, Callable[..., bytes]] = {}


def compress(event: bytes) -> bytes:
    """One frame of an event's JSON. Not thread-safe: each process compresses in one thread."""
    return _compress()(event)


def decompress(frame: bytes) -> bytes:
    """The event's JSON.

    Raises BadPayload when the frame is damaged, and MissingDictionary when its dictionary isn't here (yet).
    """
    # Looking the head up costs less than reading it. A large frame's head is longer, so that it may lead to a wrong dictionary.
    inflate = _known_heads.get(frame[:_HEAD])
    if inflate is not None:
        try:
            return inflate(frame, max_output_size=MAX_EVENT_BYTES)
        except zstandard.ZstdError:
            pass
    inflate = _decompress(number_of(frame))
    try:
        event = inflate(frame, max_output_size=MAX_EVENT_BYTES)
    except zstandard.ZstdError as error:
        raise BadPayload(str(error)) from None
    _known_heads[frame[:_HEAD]] = inflate
    return event
