"""The cost of a megabyte depends little on its content.

It is compared with the cost of reading a megabyte, in processor time of the same run.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from edge.validation.validate import STRICT, InvalidEvents, checked_text, validate
from tests.edge_events import event

MEGABYTE = 1_048_576
READINGS = 5
"""The most that a body may cost, in readings of a megabyte of numbers.

The dearest bodies take two; repairs one by one took seven to twenty."""
UPPER = "0199EE65-F275-750F-87FC-3665CC81DDA7"


def text(**fields: Any) -> bytes:
    return json.dumps(event(**fields), separators=(",", ":")).encode()


def filled(start: bytes, unit: bytes, end: bytes) -> bytes:
    """As many units as fit into a megabyte."""
    return start + unit * ((MEGABYTE - len(start) - len(end)) // len(unit)) + end


def listed(unit: bytes, whole: bytes | None = None) -> bytes:
    return filled((whole or text())[:-1] + b',"x":[', unit + b",", b"0]}")


def written(unit: bytes) -> bytes:
    return filled(text()[:-1] + b',"x":"', unit, b'"}')


def named(unit: bytes, whole: bytes) -> bytes:
    """An event with as many fields of different names."""
    return (
        whole[:-1] + b"," + b",".join(unit % number for number in range(900_000 // len(unit % 10_000))) + b"}"
    )


FRACTION = text().replace(b'"line":10', b'"line":10.0')
BAD = text(kind="x")
BODIES: dict[str, Callable[[], bytes]] = {
    "fractions": lambda: listed(b"1.0", FRACTION),
    "fractions of a line": lambda: listed(b'{"line":1.0}', FRACTION),
    "exponents": lambda: listed(b"1e1", FRACTION),
    "numbers": lambda: listed(b"1", BAD),
    "high surrogates": lambda: written(rb"\ud83d"),
    "low surrogates": lambda: written(rb"\udc00"),
    "surrogates between quotes": lambda: written(rb"\ud83d\""),
    "pairs and a lone one": lambda: written(rb"\ud83d\ude00")[:-14] + rb'\ud83d"}',
    "escapes and a lone surrogate": lambda: written(rb"\n")[:-8] + rb'\ud83d"}',
    "backslashes and a lone surrogate": lambda: written(rb"\\\\")[:-8] + rb'\ud83d"}',
    "lists": lambda: listed(b"[]", BAD),
    "deep": lambda: listed(b"[" * 900 + b"]" * 900),
    "too deep": lambda: text()[:-1] + b',"x":' + b"[" * 500_000 + b"]" * 500_000 + b"}",
    "names": lambda: named(b'"k%d":1', BAD),
    "names next to an id in capitals": lambda: named(b'"k%d":1', text(id=UPPER, traceId=UPPER)),
    "a long name": lambda: filled(BAD[:-1] + b',"', b"k", b'":1}'),
    "tags": lambda: text(tags={str(number): "" for number in range(80_000)}),
    "tags that are no texts": lambda: text(tags={str(number): 1 for number in range(80_000)}),
    "hashes that are no texts": lambda: text(user={"linkHashes": {str(n): 1 for n in range(80_000)}}),
    "frames": lambda: text(error={"type": "E", "message": "m", "stack": [{}] * 300_000}),
    "breadcrumbs": lambda: text(breadcrumbs=[{}] * 300_000),
    "fingerprint": lambda: text(fingerprint=[1] * 400_000),
    "release of signs": lambda: text(release="@a" * 500_000),
    "time of digits": lambda: text(timestamp="2026-01-31T12:00:00." + "0" * 1_000_000),
    "one great number": lambda: BAD[:-1] + b',"x":' + b"1" * 1_000_000 + b"}",
    "great numbers": lambda: listed(b"1" * 4200, BAD),
    "a great line": lambda: text().replace(b'"line":10', b'"line":' + b"1" * 1_000_000),
}


def verdict(body: bytes) -> None:
    with suppress(InvalidEvents):
        validate(checked_text(body), STRICT)


def tries(work: Callable[[], object]) -> Iterator[float]:
    """Processor time of this thread for each of three tries."""
    for _ in range(3):
        began = time.thread_time()
        work()
        yield time.thread_time() - began


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_any_megabyte_costs_as_much_as_a_few_readings_of_one(body: Callable[[], bytes]) -> None:
    content, numbers = body(), filled(b"[", b"1,", b"0]")
    assert len(content) <= MEGABYTE
    most = READINGS * min(tries(lambda: json.loads(numbers)))
    assert any(spent < most for spent in tries(lambda: verdict(content)))
