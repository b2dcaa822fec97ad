"""Changes of an issue as sentences."""

from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec import Struct

from dashboard.view.raw_event import items_of, mapping_of, text_of
from dashboard.view.text import plural
from storage.reader.answers import ActivityRow

_NAMED = 10
_WORDS = {
    "created": "First seen",
    "regressed": "Regressed",
    "resolved": "Resolved",
    "ignored": "Ignored",
    "reopened": "Opened again",
    "merged": "Merged",
    "unmerged": "Taken apart",
    "assigned": "Assigned",
    "commented": "Comment",
}


class ActivityLine(Struct, frozen=True):
    """A change: what, by whom, when, what was said, and the merged issue that was changed, where it wasn't this one."""

    words: str
    by: str
    at: str
    text: str
    part: str


def describe(row: ActivityRow, issue: str) -> ActivityLine:
    """A row of an issue's activity as people read it."""
    try:
        data: dict[str, Any] = mapping_of(msgspec.json.decode(row.data))
    except msgspec.DecodeError:
        data = {}
    part = row.issue_id if row.issue_id != issue else ""
    return ActivityLine(_WORDS.get(row.kind, row.kind), row.by, row.at, _text(row.kind, data), part)


def _text(kind: str, data: dict[str, Any]) -> str:
    told = _TEXTS.get(kind)
    return "" if told is None else told(data)


def _resolved(data: dict[str, Any]) -> str:
    release = text_of(data.get("resolvedIn"))
    return _with("in", "the next release" if release == "next" else release)


def _merged(data: dict[str, Any]) -> str:
    return _with("with", text_of(data.get("issue"))) or _with("into", text_of(data.get("into")))


def _unmerged(data: dict[str, Any]) -> str:
    parts = ", ".join([text_of(issue) for issue in items_of(data.get("issues"))[:_NAMED]])
    return parts or _with("from", text_of(data.get("from")))


def _release(data: dict[str, Any]) -> str:
    return _with("with", text_of(data.get("release")))


def _with(word: str, what: str) -> str:
    return f"{word} {what}" if what else ""


def _rest(until: Any) -> str:
    """What an issue was ignored for; empty where that isn't told."""
    match mapping_of(until):
        case {"time": str(time)}:
            return f"until {time}"
        case {"events": int(events)}:
            return f"for {plural(events, 'event')}"
        case {"users": int(users)}:
            return f"for {plural(users, 'user')}"
    return ""


_TEXTS: Final[dict[str, Callable[[dict[str, Any]], str]]] = {
    "created": _release,
    "regressed": _release,
    "resolved": _resolved,
    "ignored": lambda data: _rest(data.get("ignoreUntil")) or "for ever",
    "reopened": lambda data: _with("after it was ignored", _rest(data.get("ignoreUntil"))),
    "merged": _merged,
    "unmerged": _unmerged,
    "assigned": lambda data: f"to {text_of(data.get('assignee')) or 'nobody'}",
    "commented": lambda data: text_of(data.get("text")),
}
