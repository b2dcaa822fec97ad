"""Releases of a project: what each brought, as far as events are kept."""

from storage.reader.cursors import ReleaseCursor
from storage.reader.parameters import Sql
from storage.reader.question import Question


def page(question: Question, limit: int, cursor: ReleaseCursor | None) -> Sql:
    """Release, first and last seen (Unix ms), events, new issues and regressions of the newest, one more than the limit.

    By their first event, which stays where it is: by the last one a release that is in use would climb past the cursor.
    """
    statement = question.statement()
    after = ""
    if cursor is not None:
        moment = statement.parameters.moment(cursor.time)
        name = statement.parameters.add(cursor.release, "String")
        after = f" AND (since < {moment} OR (since = {moment} AND release > {name}))"
    project = statement.project
    seen = (
        "SELECT release, min(first) AS since, max(last) AS until, sum(n) AS events"
        f" FROM issue_day_er WHERE {project} GROUP BY release HAVING events > 0{after} ORDER BY since DESC, release LIMIT {limit + 1:d}"
    )
    opened = (
        "SELECT first_release AS release, count() AS new_issues"
        f" FROM issues FINAL WHERE {project} AND deleted = 0 AND merged_into = 0 GROUP BY release"
    )
    regressed = (
        "SELECT JSONExtractString(data, 'release') AS release, count() AS regressions"
        f" FROM issue_activity FINAL WHERE {project} AND kind = 'regressed' GROUP BY release"
    )
    return statement.ready(
        "SELECT release, toUnixTimestamp64Milli(since), toUnixTimestamp64Milli(until), events, new_issues, regressions"
        f" FROM ({seen}) AS seen LEFT JOIN ({opened}) AS opened USING (release)"
        f" LEFT JOIN ({regressed}) AS regressed USING (release) ORDER BY since DESC, release"
    )
