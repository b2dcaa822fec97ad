"""Payloads: an event's JSON. Earlier releases carried and stored a frame in its place, compressed alone with a shared dictionary.

Frames are only read. A frame names its dictionary: number 1 ships with the product; a deployment's own, from `FIRST_OWN` on, are the
files `n.zstd-dictionary` in the folder SVC_PAYLOAD_DICTIONARIES, each with a checksum in `n.sha256`, because a truncated file is a
valid but different dictionary (`docs/decisions/payloads.md`).
"""

import hashlib
import re
from collections.abc import Callable
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Final

import zstandard

from schemas.errors import BadPayload, BadSetting, MissingDictionary

FRAME_MAGIC: Final = zstandard.FRAME_HEADER
"""The first bytes of a frame; no JSON begins with them."""
ID_BASE: Final = 32_768
"""Dictionary ids below are reserved by zstd's registry: dictionary n has the id ID_BASE + n."""
FIRST_OWN: Final = 1000
LAST: Final = 32_767
"""A frame's header has two bytes for the id."""
MAX_EVENT_BYTES: Final = 4 * 1024 * 1024
"""Maximum decompressed size of a frame; a 1 MB event with repaired surrogates is far smaller."""
_FILE: Final = re.compile(r"(\d{4,5})\.zstd-dictionary")

_folder: Path | None = None


def use_dictionaries(folder: str) -> None:
    """Set the folder of the deployment's own dictionaries (SVC_PAYLOAD_DICTIONARIES, '' for none).

    Called once, at a process's start. Raises BadSetting if the folder is missing or a dictionary in it is damaged.
    """
    global _folder  # noqa: PLW0603 - a setting of the process
    _folder = Path(folder) if folder else None
    _decompress.cache_clear()
    try:
        for file in _folder.iterdir() if _folder else ():
            match = _FILE.fullmatch(file.name)
            if match and FIRST_OWN <= int(match[1]) <= LAST:
                dictionary(int(match[1]))
    except (OSError, MissingDictionary) as error:
        raise BadSetting(f"SVC_PAYLOAD_DICTIONARIES: {error}") from None


def event_json(payload: bytes) -> bytes:
    """The event's JSON.

    Raises BadPayload if it is a damaged frame, and MissingDictionary if it is a frame whose dictionary is missing.
    """
    if not payload.startswith(FRAME_MAGIC):
        return payload
    inflate = _decompress(number_of(payload))
    try:
        return inflate(payload, max_output_size=MAX_EVENT_BYTES)
    except zstandard.ZstdError as error:
        raise BadPayload(str(error)) from None


def number_of(frame: bytes) -> int:
    """The number of the frame's dictionary. Raises BadPayload if it is out of range."""
    try:
        number = zstandard.get_frame_parameters(frame).dict_id - ID_BASE
    except zstandard.ZstdError as error:
        raise BadPayload(str(error)) from None
    if not 1 <= number <= LAST:
        raise BadPayload("the frame's dictionary is unknown")
    return number


def dictionary(number: int) -> bytes:
    """The bytes of a dictionary. Raises MissingDictionary."""
    if number >= FIRST_OWN:
        return _own_dictionary(number)
    file = resources.files("schemas") / "dictionaries" / f"{number}.zstd-dictionary"
    if not file.is_file():
        raise MissingDictionary(f"payload dictionary {number} ships with another version of the product")
    return file.read_bytes()


def _own_dictionary(number: int) -> bytes:
    if _folder is None:
        raise MissingDictionary(
            f"payload dictionary {number} is missing: set SVC_PAYLOAD_DICTIONARIES to the folder that has it"
        )
    file = _folder / f"{number}.zstd-dictionary"
    try:
        content, checksum = file.read_bytes(), (_folder / f"{number}.sha256").read_text("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise MissingDictionary(
            f"payload dictionary {number} is missing: put it and its sum into {_folder} ({error})"
        ) from None
    dict_id = zstandard.ZstdCompressionDict(content).dict_id()
    if hashlib.sha256(content).hexdigest() != checksum or dict_id != ID_BASE + number:
        raise MissingDictionary(f"payload dictionary {number} is damaged: {file} is not what its sum says")
    return content


@cache
def _decompress(number: int) -> Callable[..., bytes]:
    # A failure isn't cached: the file may be supplied while the process runs.
    return zstandard.ZstdDecompressor(dict_data=zstandard.ZstdCompressionDict(dictionary(number))).decompress
