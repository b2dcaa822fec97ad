"""The changes of issues."""

from collections.abc import Sequence

from schemas.ids import hex64
from storage.reader.cursors import ActivityCursor
from storage.reader.parameters import Sql
from storage.reader.question import Question


def page(question: Question, issues: Sequence[int], limit: int, cursor: ActivityCursor | None) -> Sql:
    """Id, kind, author, time (Unix ms), data and issue of the newest changes of some issues, one more than the limit."""
    statement = question.statement()
    after = ""
    if cursor is not None:
        moment = statement.parameters.moment(cursor.time)
        after = f" AND (at < {moment} OR (at = {moment} AND id < {statement.parameters.add(cursor.id, 'String')}))"
    return statement.ready(
        "SELECT id, kind, by, toUnixTimestamp64Milli(at), data, issue_id FROM issue_activity FINAL"
        f" WHERE {statement.project} AND issue_id IN {statement.numbers(list(issues))}{after}"
        f" ORDER BY at DESC, id DESC LIMIT {limit + 1:d}"
    )


def merge_of(question: Question, issue: int, fingerprint: int) -> Sql:
    """Author and time (Unix ms) of the last merge that made a fingerprint a part of an issue."""
    statement = question.statement()
    name = statement.parameters.add(hex64(fingerprint), "String")
    return statement.ready(
        "SELECT by, toUnixTimestamp64Milli(at) FROM issue_activity FINAL"
        f" WHERE {statement.project} AND issue_id = {statement.parameters.add(issue, 'UInt64')} AND kind = 'merged'"
        f" AND has(JSONExtract(data, 'fingerprints', 'Array(String)'), {name}) ORDER BY at DESC, id DESC LIMIT 1"
    )
