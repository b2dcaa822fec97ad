"""Batches of events from JSONL files for the ingest endpoint: up to 100 events and 1 MB each."""

import gzip
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

MAX_EVENTS = 100
MAX_BYTES = 1 << 20
HEAD, TAIL = b'{"events":[', b"]}"


@dataclass(frozen=True)
class SendBatch:
    """Consecutive events: the overall index of the first, and each event's JSON."""

    first: int
    events: tuple[bytes, ...]


def read_lines(file: Path, advance: Callable[[int], object] = lambda _: None) -> Iterator[bytes]:
    """The lines of a JSONL file, optionally gzipped; calls `advance` with the number of newly read bytes."""
    with file.open("rb") as raw:
        lines = gzip.GzipFile(fileobj=raw) if file.suffix == ".gz" else raw
        reported = 0
        for line in lines:
            position = raw.tell()
            advance(position - reported)
            reported = position
            if stripped := line.strip():
                yield stripped


def is_json(event: bytes) -> bool:
    """Whether the bytes are JSON: an event that isn't would make its whole batch invalid."""
    try:
        msgspec.json.decode(event, type=msgspec.Raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def batches(events: Iterable[bytes]) -> Iterator[SendBatch]:
    """Fill batches in order; an oversized or invalid event gets its own batch, so that only it is refused."""
    first, filled, size = 0, list[bytes](), len(HEAD) + len(TAIL)
    for event in events:
        alone = not is_json(event)
        if filled and (alone or len(filled) == MAX_EVENTS or size + len(event) + 1 > MAX_BYTES):
            yield SendBatch(first, tuple(filled))
            first, filled, size = first + len(filled), [], len(HEAD) + len(TAIL)
        if alone:
            yield SendBatch(first, (event,))
            first += 1
        else:
            filled.append(event)
            size += len(event) + 1
    if filled:
        yield SendBatch(first, tuple(filled))
