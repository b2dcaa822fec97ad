"""The bodies of hostile clients; each costs the sender only a few kilobytes."""

import gzip
import random
from typing import Final

import msgspec

from schemas.ids import uuid7
from schemas.times import iso

MEGABYTE: Final = 1_048_576


def event(**fields: object) -> bytes:
    """A small event, with fields added or replaced."""
    value = uuid7()
    return msgspec.json.encode(
        {
            "id": str(value),
            "timestamp": iso(value.int >> 80),
            "kind": "error",
            "platform": "javascript",
            "release": "siege@1.0.0+1",
            "environment": "prod",
            "device": {"os": "web", "osVersion": "1"},
            "app": {"version": "1.0.0"},
            "error": {
                "type": "E",
                "message": "m",
                "stack": [{"file": "a.js", "line": 1, "inApp": True}],
            },
        }
        | fields
    )


def filled(start: bytes, unit: bytes, end: bytes) -> bytes:
    """A megabyte of repeated units, gzipped."""
    whole = start + unit * ((MEGABYTE - len(start) - len(end)) // len(unit)) + end
    return gzip.compress(whole, 9)


def bombs() -> list[bytes]:
    """Bodies that inflate beyond the limit, to a thousand times their size, and in many members."""
    zeros = gzip.compress(bytes(64 * MEGABYTE), 9)
    blank = filled(event()[:-1] + b',"x":"', b" ", b'"}')
    return [zeros, blank, gzip.compress(bytes(MEGABYTE // 32), 9) * 33]


def repairs() -> list[bytes]:
    """Events with a megabyte of repairs, both refused and accepted ones."""
    fraction = event().replace(b'"line":1', b'"line":1.0')
    return [
        filled(fraction[:-1] + b',"x":[', b"1.0,", b"0]}"),
        filled(fraction[:-1] + b',"x":[', b'{"line":1.0},', b"0]}"),
        filled(event(kind="x")[:-1] + b',"x":"', rb"\ud83d", b'"}'),
        filled(event(kind="x")[:-1] + b',"x":"', rb"\udc00\"", b'"}'),
        filled(event(id=str(uuid7()).upper(), kind="x")[:-1] + b',"x":[', b"[],", b"0]}"),
        gzip.compress(event(kind="x", user={"linkHashes": {str(n): 1 for n in range(80_000)}}), 6),
    ]


def nestings() -> list[bytes]:
    """Many events at or beyond the nesting limit."""
    deep = event()[:-1] + b',"x":' + b"[" * 500_000 + b"]" * 500_000 + b"}"
    return [
        gzip.compress(deep, 9),
        filled(event(kind="x")[:-1] + b',"x":[', b"[" * 400 + b"]" * 400 + b",", b"0]}"),
        filled(event(kind="x")[:-1] + b',"x":[', b'{"a":[{},[]]},', b"0]}"),
    ]


def refused() -> list[bytes]:
    """Small events with violations."""
    return [event(kind="x"), event(error={}), b"{", b"[]", event(timestamp="now", release="x")]


def near_duplicate(number: int) -> bytes:
    """An event of an issue that shares its frames and most words with those of all other numbers."""
    words = random.Random(number).sample(range(1000), 20)
    frames = [{"file": f"lib{n}.py", "function": f"call{n}", "line": n + 1, "inApp": True} for n in range(90)]
    return event(
        error={
            "type": f"E{number % 7}",
            "message": f"no {' nor '.join(f'word{chr(97 + word % 26) * (1 + word % 9)}' for word in words)}",
            "stack": [
                {"file": f"own{number}.py", "function": f"own{number}", "line": 1, "inApp": True},
                *frames,
            ],
        },
        fingerprint=[f"near duplicate {number}"],
    )
