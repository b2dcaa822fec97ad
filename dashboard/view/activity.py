"""Changes of an issue as sentences."""

from typing import Any

import msgspec
from msgspec import Struct

from dashboard.view.loose import mapping_of, text_of
from storage.reader.answers import ActivityRow

_WORDS = {
    "created": "First seen",
    "regressed": "Regressed",
    "resolved": "Resolved",
    "ignored": "Ignored",
    "reopened": "Opened again",
    "merged": "Merged with another issue",
    "unmerged": "Taken apart",
    "assigned": "Assigned",
    "commented": "Comment",
}


class Change(Struct, frozen=True):
    """A change: what, by whom, when, and what was said."""

    words: str
    by: str
    at: str
    text: str


def describe(row: ActivityRow) -> Change:
    """A row of the activity as people read it."""
    try:
        data: dict[str, Any] = mapping_of(msgspec.json.decode(row.data))
    except msgspec.DecodeError:
        data = {}
    text = ""
    match row.kind:
        case "commented":
            text = text_of(data.get("text"))
        case "assigned":
            text = f"to {text_of(data.get('assignee')) or 'nobody'}"
        case "resolved":
            release = text_of(data.get("resolvedIn"))
            text = f"in {release}" if release else ""
        case "created" | "regressed":
            release = text_of(data.get("release"))
            text = f"with {release}" if release else ""
    return Change(_WORDS.get(row.kind, row.kind), row.by, row.at, text)
