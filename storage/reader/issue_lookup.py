"""Statements that find issues: by id, whatever their project, and by fingerprint."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from storage.reader.issue_rows import COLUMNS
from storage.reader.parameters import Parameters, Sql
from storage.reader.question import Question

ISSUE_REF: Final = (
    "project_id, issue_id, fingerprints, toUnixTimestamp64Milli(first_seen), toUnixTimestamp64Milli(last_seen), events,"
    " merged_into, grouping_parts"
)


class IssueRef(Struct, frozen=True):
    """What finding an issue's events takes: few columns, so that they are read fast. In the order of `ISSUE_REF`; times are Unix ms."""

    project_id: int
    issue_id: int
    fingerprints: list[int]
    first_seen: int
    last_seen: int
    events: int
    merged_into: int
    grouping_parts: list[str]

    @property
    def gap(self) -> int:
        """Milliseconds between two of its events, on the average."""
        return (self.last_seen - self.first_seen) // max(1, self.events)


def issue_by_id(issue: int, project: int | None, columns: str = COLUMNS) -> Sql:
    """Columns of an issue. Its id is unique among all projects; with the project it is found by the table's key."""
    parameters = Parameters()
    conditions = [f"issue_id = {parameters.add(issue, 'UInt64')}", "deleted = 0"]
    if project is not None:
        conditions.append(f"project_id = {parameters.add(project, 'UInt32')}")
    text = f"SELECT {columns} FROM issues FINAL WHERE {' AND '.join(conditions)} LIMIT 1"
    return Sql(text, parameters.values)


def issues_of(question: Question, fingerprints: Sequence[int]) -> Sql:
    """Fingerprint, issue and the issue's readable parts, for those that belong to a known issue."""
    statement = question.statement()
    numbers = statement.numbers(list(fingerprints))
    return statement.ready(
        "SELECT fingerprint, issue_id, grouping_parts FROM"
        " (SELECT arrayJoin(fingerprints) AS fingerprint, issue_id, grouping_parts FROM"
        f" issues FINAL WHERE {statement.project} AND deleted = 0 AND merged_into = 0"
        f" AND hasAny(fingerprints, {numbers})) WHERE fingerprint IN {numbers}"
    )
