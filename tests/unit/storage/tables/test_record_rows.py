import uuid

import msgspec
import pyarrow as pa
import pytest

from schemas.issues import Activity, IssueRecord, Outcome
from schemas.projects import Project
from storage.tables import record_rows
from storage.tables.record_rows import (
    activity_row,
    issue_row,
    newest_issues,
    outcome_row,
    project_row,
    table,
)

ISSUE = IssueRecord(
    id="00000000000000ff",
    project_id="7",
    fingerprints=("00000000000000aa", "ffffffffffffffff"),
    error_type="E",
    message="m",
    culprit="c",
    first_seen_ms=1000,
    last_seen_ms=2000,
    platforms={"ios": 1, "javascript": 5},
    environments={"prod": 1, "dev": 2},
    last_event="0199ee65-f275-750f-87fc-3665cc81dda7",
    ignore_until={"events": 5},
    version=3,
)


def only(schema: pa.Schema, row: record_rows.Row) -> dict[str, object]:
    found: list[dict[str, object]] = table(schema, [row]).to_pylist()
    return found[0]


def test_an_issue_is_a_row_of_issues() -> None:
    row = only(record_rows.ISSUES, issue_row(ISSUE))
    assert row["issue_id"] == 255
    assert row["fingerprints"] == [0xAA, 2**64 - 1]
    assert row["platform"] == "javascript"
    assert row["environments"] == ["dev", "prod"]
    assert row["ignore_until"] == '{"events":5}'
    assert (row["assignee"], row["resolved_in"]) == ("", "")
    last = row["last_event"]
    assert isinstance(last, bytes)
    assert uuid.UUID(bytes=last[::-1]) == uuid.UUID(ISSUE.last_event)


def test_an_activity_and_an_outcome_are_rows() -> None:
    activity = Activity(
        "a1", "00000000000000ff", "7", "resolved", "admin", "2026-01-02T03:04:05.678Z", {"in": "next"}
    )
    assert only(record_rows.ISSUE_ACTIVITY, activity_row(activity))["data"] == '{"in":"next"}'
    outcome = Outcome(
        "7", "2026-01-02T03:04:00.000Z", "js/1", "invalid", "schema", 3, "edge-1", 9, "kind: required"
    )
    row = only(record_rows.OUTCOMES, outcome_row(outcome))
    assert (row["count"], row["source"], row["sequence"], row["example"]) == (
        3,
        "edge-1",
        9,
        "kind: required",
    )
    assert str(row["minute"]) == "2026-01-02 03:04:00"


def test_a_bad_identifier_or_time_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        activity_row(Activity("a", "x", "7", "created", "", "2026-01-02T03:04:05Z"))
    with pytest.raises(ValueError, match="offset"):
        activity_row(Activity("a", "ff", "7", "created", "", "2026-01-02T03:04:05"))


def test_payloads_are_kept_no_longer_than_events() -> None:
    project = Project("7", "shop", "2026-01-02T03:04:05Z", retention_days=30)
    assert project.stored_days == (30, 30)
    assert msgspec.structs.replace(project, payload_retention_days=7).stored_days == (30, 7)
    assert msgspec.structs.replace(project, payload_retention_days=70).stored_days == (30, 30)
    assert only(record_rows.PROJECTS, project_row(project, 5))["payload_days"] == 30


def test_only_the_newest_row_of_an_issue_stays() -> None:
    rows = {
        (number, version): issue_row(msgspec.structs.replace(ISSUE, id=f"{number:016x}", version=version))
        for number, version in ((1, 1), (2, 5), (1, 3), (1, 2))
    }
    assert newest_issues(rows.values()) == [rows[1, 3], rows[2, 5]]
