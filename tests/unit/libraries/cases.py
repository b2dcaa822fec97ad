"""The cases that every reporting library passes: `cases.json`, which JavaScript's tests read too."""

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent


def expanded(value: Any) -> Any:
    """The value with `{"repeat": "ab", "times": 2, "then": "c"}` written out: `ababc`."""
    if isinstance(value, list):
        return [expanded(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "repeat" in value:
        return value["repeat"] * value["times"] + value.get("then", "")
    return {key: expanded(item) for key, item in value.items()}


CASES: dict[str, Any] = expanded(json.loads((FOLDER / "cases.json").read_text(encoding="utf-8")))
