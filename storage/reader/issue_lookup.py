"""Statements that find issues: by id, whatever their project, and by fingerprint."""

from collections.abc import Sequence

from storage.query.parameters import Parameters, Sql
from storage.reader.issue_rows import COLUMNS
from storage.reader.question import Question


def issue_by_id(issue: int) -> Sql:
    """`COLUMNS` of an issue; its id is unique among all projects."""
    parameters = Parameters()
    number = parameters.add(issue, "UInt64")
    text = f"SELECT {COLUMNS} FROM issues FINAL WHERE issue_id = {number} AND deleted = 0 LIMIT 1"
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
