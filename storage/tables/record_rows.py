"""Issues, activity, changes, outcomes and projects as columns of the tables of the same names.

Pure: no I/O, no clock.
"""

import uuid
from collections.abc import Iterable, Sequence
from typing import Any, Final

import pyarrow as pa

from schemas.change_records import Change
from schemas.issues import Activity, IssueRecord, Outcome, encode_json
from schemas.projects import Project
from schemas.times import MINUTE_MS, parse_iso

_TIME: Final = pa.timestamp("ms")
_TEXT: Final = pa.string()
_TEXTS: Final = pa.list_(pa.string())
_U128: Final = pa.binary(16)

ISSUES: Final = pa.schema({
    "project_id": pa.uint32(), "issue_id": pa.uint64(), "fingerprints": pa.list_(pa.uint64()),
    "error_type": _TEXT, "message": _TEXT, "culprit": _TEXT, "platform": _TEXT, "status": _TEXT,
    "regressed": pa.uint8(), "first_seen": _TIME, "last_seen": _TIME, "events": pa.uint64(), "users": pa.uint64(),
    "first_release": _TEXT, "last_release": _TEXT, "environments": _TEXTS, "releases": _TEXTS,
    "assignee": _TEXT, "resolved_in": _TEXT, "ignore_until": _TEXT, "last_event": _U128,
    "grouping_version": _TEXT, "grouping_rule": _TEXT, "grouping_parts": _TEXTS,
    "merged_into": pa.uint64(), "version": pa.uint64(), "deleted": pa.uint8(), "escalated": _TIME,
})  # fmt: skip
ISSUE_ACTIVITY: Final = pa.schema({
    "project_id": pa.uint32(), "issue_id": pa.uint64(), "at": _TIME, "id": _TEXT, "kind": _TEXT, "by": _TEXT,
    "data": _TEXT, "version": pa.uint64(),
})  # fmt: skip
CHANGES: Final = pa.schema({
    "project_id": pa.uint32(), "id": _TEXT, "kind": _TEXT, "by": _TEXT, "via": _TEXT, "at": _TIME, "before": _TEXT,
    "after": _TEXT,
})  # fmt: skip
OUTCOMES: Final = pa.schema({
    "project_id": pa.uint32(), "minute": pa.timestamp("s"), "sdk": _TEXT, "outcome": _TEXT, "reason": _TEXT,
    "source": _TEXT, "sequence": pa.uint64(), "count": pa.uint64(), "example": _TEXT,
})  # fmt: skip
PROJECTS: Final = pa.schema({
    "project_id": pa.uint32(), "name": _TEXT, "created": _TIME, "retention_days": pa.uint16(),
    "payload_days": pa.uint16(), "rate_limit": pa.uint32(), "version": pa.uint64(), "deleted": pa.uint8(),
})  # fmt: skip

Row = tuple[Any, ...]


def table(schema: pa.Schema, rows: Sequence[Row]) -> pa.Table:
    """Rows as an Arrow table.

    Raises pyarrow's errors, which are ValueErrors, for a value out of its column's range.
    """
    # In one call: a call per column costs several times the conversion of few rows.
    return pa.Table.from_struct_array(pa.array(rows, pa.struct(schema)))


def issue_row(issue: IssueRecord) -> Row:
    """A row of `issues`. Raises ValueError for a bad identifier."""
    return (
        int(issue.project_id),
        int(issue.id, 16),
        [int(fingerprint, 16) for fingerprint in issue.fingerprints],
        issue.error_type,
        issue.message,
        issue.culprit,
        _most_frequent(issue.platforms),
        issue.status,
        int(issue.regressed),
        issue.first_seen_ms,
        issue.last_seen_ms,
        issue.events,
        issue.users,
        issue.first_release,
        issue.last_release,
        sorted(issue.environments),
        sorted(issue.releases),
        issue.assignee or "",
        issue.resolved_in or "",
        encode_json(issue.ignore_until).decode() if issue.ignore_until else "",
        _uint128(issue.last_event),
        issue.grouping_version,
        issue.grouping_rule,
        list(issue.grouping_parts),
        int(issue.merged_into, 16) if issue.merged_into else 0,
        issue.version,
        0,
        issue.escalated_ms,
    )


def activity_row(activity: Activity) -> Row:
    """A row of `issue_activity`. Raises ValueError for a bad identifier or time."""
    return (
        int(activity.project_id),
        int(activity.issue, 16),
        parse_iso(activity.at),
        activity.id,
        activity.kind,
        activity.by,
        encode_json(activity.data).decode(),
        activity.version,
    )


def change_row(change: Change) -> Row:
    """A row of `changes`. Raises ValueError for a bad identifier or time."""
    return (
        int(change.project_id),
        change.id,
        change.kind,
        change.by,
        change.via,
        parse_iso(change.at),
        change.before,
        change.after,
    )


def outcome_row(outcome: Outcome) -> Row:
    """A row of `outcomes`. Raises ValueError for a bad identifier or time."""
    return (
        int(outcome.project_id),
        parse_iso(outcome.minute) // MINUTE_MS * 60,
        outcome.sdk,
        outcome.outcome,
        outcome.reason,
        outcome.source,
        outcome.sequence,
        outcome.count,
        outcome.example,
    )


def project_row(project: Project, version: int) -> Row:
    """A row of `projects`. Raises ValueError for a bad identifier or time."""
    return (
        project.number,
        project.name,
        parse_iso(project.created_at),
        *project.stored_days,
        project.rate_limit_per_minute,
        version,
        0,
    )


def newest_issues(rows: Iterable[Row]) -> list[Row]:
    """The row of each issue with the highest version."""
    number, version = (ISSUES.get_field_index(name) for name in ("issue_id", "version"))
    latest: dict[int, Row] = {}
    for row in rows:
        known = latest.get(row[number])
        if known is None or known[version] <= row[version]:
            latest[row[number]] = row
    return list(latest.values())


def _most_frequent(counts: dict[str, int]) -> str:
    return max(counts, key=lambda name: (counts[name], name), default="")


def _uint128(text: str) -> bytes:
    return uuid.UUID(text).bytes[::-1] if text else bytes(16)
