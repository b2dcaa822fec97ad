"""Payloads: each event is compressed once, separately, with a shared dictionary.

One compression at the edge replaces those of two topics and of the table, and each event can be read separately. A frame names its
dictionary; dictionaries are added, never changed (`docs/decisions/payloads.md`).
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
"""With a dictionary of the deployment's own events, level 3 is as fast as level 1 without, since most of an event matches."""
SHIPPED_LEVEL: Final = 1
_HEAD: Final = 7
"""Bytes of magic number, descriptor and dictionary id."""
MAX_EVENT_BYTES: Final = 4 * 1024 * 1024
"""Maximum decompressed size of a frame; a 1 MB event with repaired surrogates is far smaller."""

_dictionaries = Dictionaries()


def use_dictionaries(folder: str) -> None:
    """Set the folder of the deployment's own dictionaries (SVC_PAYLOAD_DICTIONARIES, '' for none).

    Called once, at a process's start. Raises BadSetting if the folder is missing or a dictionary in it is damaged.
    """
    dictionaries = Dictionaries(Path(folder) if folder else None)
    dictionaries.check()
    _dictionaries.folder = dictionaries.folder
    for cached in (_compress, _decompress):
        cached.cache_clear()
    _known_heads.clear()


def compressor(content: bytes, level: int) -> zstandard.ZstdCompressor:
    """A compressor with a dictionary of these bytes."""
    dictionary = zstandard.ZstdCompressionDict(content)
    dictionary.precompute_compress(level=level)
    return zstandard.ZstdCompressor(
        dict_data=dictionary, level=level, write_checksum=False, write_dict_id=True, write_content_size=True
    )


def number_of(frame: bytes) -> int:
    """The number of the frame's dictionary. Raises BadPayload if it is out of range."""
    try:
        number = zstandard.get_frame_parameters(frame).dict_id - ID_BASE
    except zstandard.ZstdError as error:
        raise BadPayload(str(error)) from None
    if not 1 <= number <= LAST:
        raise BadPayload("the frame's dictionary is unknown")
    return number


@cache
def _compress() -> Callable[[bytes], bytes]:
    number = _dictionaries.newest()
    level = OWN_LEVEL if number >= FIRST_OWN else SHIPPED_LEVEL
    return compressor(_dictionaries.content(number), level).compress


@cache
def _decompress(number: int) -> Callable[..., bytes]:
    # A failure isn't cached: the file may be supplied while the process runs.
    dictionary = zstandard.ZstdCompressionDict(_dictionaries.content(number))
    return zstandard.ZstdDecompressor(dict_data=dictionary).decompress


_known_heads: dict[bytes, Callable[..., bytes]] = {}


def compress(event: bytes) -> bytes:
    """Compress an event's JSON to a frame. Not thread-safe: each process compresses in one thread."""
    return _compress()(event)


def decompress(frame: bytes) -> bytes:
    """The event's JSON.

    Raises BadPayload if the frame is damaged, and MissingDictionary if its dictionary is missing.
    """
    # A lookup is cheaper than parsing the header. A large frame's header is longer, so the lookup may give a wrong dictionary.
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
