"""Reading an event as it was sent, whatever an SDK of tomorrow or a lenient project put into it: wrong kinds are empty."""

import json
from typing import Any


def text_of(value: Any) -> str:
    """A string as it is, nothing as nothing, anything else as JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else json_of(value)


def json_of(value: Any, indent: int | None = None) -> str:
    """JSON with every letter readable; what is nested too deep is not written."""
    try:
        return json.dumps(value, ensure_ascii=False, indent=indent)
    except (RecursionError, ValueError):
        return "…"


def number_of(value: Any) -> int:
    """A whole number that is not negative, else 0."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def mapping_of(value: Any) -> dict[str, Any]:
    """A mapping, else an empty one."""
    return value if isinstance(value, dict) else {}


def items_of(value: Any) -> list[Any]:
    """A list, else an empty one."""
    return value if isinstance(value, list) else []
