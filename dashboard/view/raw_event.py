"""Lenient access to raw events of any SDK or lenient project: values of the wrong type read as empty."""

import json
from typing import Any


def text_of(value: Any) -> str:
    """A string unchanged, None as empty text, anything else as JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else json_of(value)


def json_of(value: Any, indent: int | None = None) -> str:
    """JSON without escapes of letters; `…` if the value is nested too deeply."""
    try:
        return json.dumps(value, ensure_ascii=False, indent=indent)
    except (RecursionError, ValueError):
        return "…"


def number_of(value: Any) -> int:
    """A positive integer, else 0."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def mapping_of(value: Any) -> dict[str, Any]:
    """A mapping, else an empty one."""
    return value if isinstance(value, dict) else {}


def items_of(value: Any) -> list[Any]:
    """A list, else an empty one."""
    return value if isinstance(value, list) else []
