"""Payloads as earlier versions carried and stored them: frames, each compressed alone with a dictionary."""

import hashlib
from pathlib import Path

import msgspec
import zstandard

from cli.demo.sample_events import load_samples
from schemas.payload import ID_BASE, dictionary

EVENTS: list[bytes] = [msgspec.json.encode(event) for event in load_samples()]


def trained(number: int) -> bytes:
    """A dictionary with this number, of the samples."""
    return zstandard.train_dictionary(16_384, [*EVENTS], dict_id=ID_BASE + number, level=3).as_bytes()


def framed(event: bytes, content: bytes | None = None) -> bytes:
    """An event's frame, with the shipped dictionary or this one."""
    used = zstandard.ZstdCompressionDict(dictionary(1) if content is None else content)
    return zstandard.ZstdCompressor(dict_data=used, level=1, write_checksum=False).compress(event)


def add_dictionary(folder: Path, number: int, content: bytes) -> Path:
    """Put a dictionary and its checksum into a folder; returns its file."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{number}.sha256").write_text(hashlib.sha256(content).hexdigest() + "\n")
    file = folder / f"{number}.zstd-dictionary"
    file.write_bytes(content)
    return file
