"""Events for the tests of grouping: a short way to write one, and the shipped samples."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from bench.grouping import read_lines
from grouping.fingerprint import Fingerprint, GroupingEvent, fingerprint

SAMPLES = Path(__file__).parents[3] / "samples" / "grouping"

decode = msgspec.json.Decoder(GroupingEvent).decode


def frame(
    function: str | None, file: str, line: int = 10, column: int | None = 5, in_app: bool = True
) -> dict[str, Any]:
    """A frame as sent."""
    return {"function": function, "file": file, "line": line, "column": column, "inApp": in_app}


def event(
    kind: str = "TypeError",
    message: str = "boom",
    stack: list[dict[str, Any]] | None = None,
    platform: str = "javascript",
    cause: dict[str, Any] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """An event as sent, with the fields that grouping reads."""
    error = {"type": kind, "message": message, "stack": stack or [], "cause": cause}
    return {"platform": platform, "error": error, **more}


def grouped(sent: dict[str, Any]) -> Fingerprint:
    """The fingerprint of an event as sent."""
    return fingerprint(decode(json.dumps(sent).encode()))


@cache
def samples() -> tuple[bytes, ...]:
    """All shipped events."""
    return tuple([line for path in sorted(SAMPLES.glob("*.events.jsonl*")) for line in read_lines(path)])
