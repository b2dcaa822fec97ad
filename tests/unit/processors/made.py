"""Small events, chunks and registries for the pure parts."""

from collections.abc import Iterable, Sequence

import msgspec

from processors.positions import SourceRecord
from schemas.chunks import EVENTS_FORMAT, FORMAT_HEADER, ChunkEvent, encode_chunk
from schemas.times import iso

HOUR = 3_600_000
DAY = 24 * HOUR
START = 1_790_000_000_000
HEADERS = [(FORMAT_HEADER, EVENTS_FORMAT)]


def event_id(number: int, ms: int = START) -> bytes:
    """A uuid of version 7 with the time of `ms`, made of a number."""
    return (ms << 80 | 7 << 76 | 2 << 62 | number).to_bytes(16, "big")


def carried(number: int, *, project: int = 1, kind: int = 0, user: str = "", ms: int = START) -> ChunkEvent:
    """An event of a chunk: `kind` decides its fingerprint."""
    body = {
        "timestamp": iso(ms),
        "platform": "javascript",
        "release": f"shop@1.{kind}+1",
        "environment": "prod",
        "user": {"id": user} if user else None,
        "error": {
            "type": f"Kind{kind}Error",
            "message": "it broke",
            "stack": [{"function": f"f{kind}", "file": f"src/{kind}.js", "line": 9, "inApp": True}],
        },
    }
    return ChunkEvent(project, event_id(number, ms), ms, "test/1", msgspec.json.encode(body))


def apply(part: dict[bytes, bytes], changes: Iterable[tuple[bytes, bytes | None]]) -> None:
    """Change keys of a partition of `seen`; None removes one."""
    for key, value in changes:
        if value is None:
            part.pop(key, None)
        else:
            part[key] = value


def source(offset: int, events: Sequence[ChunkEvent], ms: int = START) -> SourceRecord:
    """A record of `events`."""
    return SourceRecord(offset, ms, None, encode_chunk(list(events)), HEADERS)
