"""An issue's activity as sentences."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from dashboard.view.charts import Mark
from dashboard.view.raw_event import items_of, mapping_of, text_of
from dashboard.view.time_texts import snooze
from schemas.changes import NEXT
from schemas.issues import SYSTEM, ActivityKind
from schemas.read_api import ActivityRow
from schemas.times import parse_iso

_MAX_LISTED = 10
_TITLES = {
    "created": "Opened",
    "regressed": "Regressed",
    "resolved": "Resolved",
    "ignored": "Ignored",
    "reopened": "Reopened",
    "merged": "Merged",
    "unmerged": "Unmerged",
    "assigned": "Assignee",
    "commented": "Comment",
    "seenInRelease": "First event in release",
    "seenInEnvironment": "First event in environment",
    "usersReached": "Users",
    "escalated": "Escalated",
}
LEFT_OUT: Final[tuple[ActivityKind, ...]] = ("seenInRelease",)
"""Too many to read; the issue's page lists its releases with its tags."""


class ActivityLine(Struct, frozen=True):
    """A change: title, author, time, details, and the merged issue if it changed that one."""

    title: str
    by: str
    at: str
    text: str
    merged_issue: str


MARKED: Final = frozenset({"escalated", "regressed", "resolved", "reopened", "merged", "unmerged"})
"""Changes that a chart shows at their time."""


def marks_of(rows: Sequence[ActivityRow]) -> list[Mark]:
    """The changes of an issue that explain its chart."""
    lines = [(describe(row, row.issue_id), row.kind) for row in rows if row.kind in MARKED]
    return [Mark(parse_iso(line.at), f"{line.title} {line.text}".strip(), kind) for line, kind in lines]


def resolved_after(rows: Sequence[ActivityRow], issue: str) -> str:
    """The release before the next one, of an issue that is resolved in the next one.

    Empty if no change says it.
    """
    made = [row for row in rows if row.kind == "resolved" and row.issue_id == issue]
    newest = max(made, key=lambda row: row.at, default=None)
    return text_of(_data(newest).get("after")) if newest else ""


def describe(row: ActivityRow, issue: str) -> ActivityLine:
    """A row of an issue's activity."""
    merged_issue = row.issue_id if row.issue_id != issue else ""
    text = _text(row.kind, _data(row))
    if row.kind == "assigned" and row.by == SYSTEM:
        text += ", by the owners of the project"
    return ActivityLine(_TITLES.get(row.kind, row.kind), row.by, row.at, text, merged_issue)


def _data(row: ActivityRow) -> dict[str, Any]:
    try:
        return mapping_of(msgspec.json.decode(row.data))
    except msgspec.DecodeError:
        return {}


def _text(kind: str, data: dict[str, Any]) -> str:
    write = _TEXTS.get(kind)
    return "" if write is None else write(data)


def _resolved(data: dict[str, Any]) -> str:
    release = text_of(data.get("resolvedIn"))
    if release != NEXT:
        return _with("in", release)
    return " ".join(filter(None, ("in the next release", _with("after", text_of(data.get("after"))))))


def _merged(data: dict[str, Any]) -> str:
    return _with("with", text_of(data.get("issue"))) or _with("into", text_of(data.get("into")))


def _unmerged(data: dict[str, Any]) -> str:
    issues = ", ".join([text_of(issue) for issue in items_of(data.get("issues"))[:_MAX_LISTED]])
    return issues or _with("from", text_of(data.get("from")))


def _release(data: dict[str, Any]) -> str:
    return _with("with", text_of(data.get("release")))


def _with(preposition: str, text: str) -> str:
    return f"{preposition} {text}" if text else ""


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else ""


_TEXTS: Final[dict[str, Callable[[dict[str, Any]], str]]] = {
    "created": _release,
    "regressed": _release,
    "resolved": _resolved,
    "ignored": lambda data: snooze(mapping_of(data.get("ignoreUntil"))) or "forever",
    "reopened": lambda data: _with("after being ignored", snooze(mapping_of(data.get("ignoreUntil")))),
    "merged": _merged,
    "unmerged": _unmerged,
    "assigned": lambda data: text_of(data.get("assignee")) or "removed",
    "commented": lambda data: text_of(data.get("text")),
    "seenInRelease": lambda data: text_of(data.get("release")),
    "seenInEnvironment": lambda data: text_of(data.get("environment")),
    "usersReached": lambda data: f"{_number(data.get('users'))} reached",
    "escalated": lambda data: f"{_number(data.get('events'))} events within an hour, far more than before",
}
