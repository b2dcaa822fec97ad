"""An event's bytes as they are carried and stored: compressed once, alone, with a shared dictionary.

One compression at the edge replaces those of two topics and of the table, and any single event can be read back without its
neighbours. A frame names its dictionary; dictionaries are never changed, only added (`docs/decisions/payloads.md`).
"""

from collections.abc import Callable
from functools import cache
from importlib import resources
from typing import Final

import zstandard

CURRENT: Final = 1
_LEVEL: Final = 1
ID_BASE: Final = 32_768
"""Dictionary ids below are reserved by zstd's registry: dictionary n has the id ID_BASE + n."""
MAX_EVENT_BYTES: Final = 4 * 1024 * 1024
"""Most that one frame may inflate to: a 1 MB event with its surrogates repaired stays far below."""


class BadPayload(Exception):
    """The bytes are not a frame of one of our dictionaries."""


@cache
def _dictionary(number: int) -> zstandard.ZstdCompressionDict:
    path = resources.files("schemas") / "dictionaries" / f"{number}.zstd-dictionary"
    if not path.is_file():
        raise BadPayload(f"no payload dictionary {number}")
    return zstandard.ZstdCompressionDict(path.read_bytes())


@cache
def _compress() -> Callable[[bytes], bytes]:
    dictionary = _dictionary(CURRENT)
    dictionary.precompute_compress(level=_LEVEL)
    compressor = zstandard.ZstdCompressor(
        dict_data=dictionary, level=_LEVEL, write_checksum=False, write_dict_id=True, write_content_size=True
    )
    return compressor.compress


@cache
def _decompress(number: int) -> Callable[..., bytes]:
    return zstandard.ZstdDecompressor(dict_data=_dictionary(number)).decompress


def compress(event: bytes) -> bytes:
    """One frame of an event's JSON. Not thread-safe: each process compresses in one thread."""
    return _compress()(event)


def decompress(frame: bytes) -> bytes:
    """The event's JSON. Raises BadPayload when the frame is damaged or names an unknown dictionary."""
    try:
        number = zstandard.get_frame_parameters(frame).dict_id - ID_BASE
        return _decompress(number)(frame, max_output_size=MAX_EVENT_BYTES)
    except zstandard.ZstdError as error:
        raise BadPayload(str(error)) from None
