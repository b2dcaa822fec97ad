"""Releases of a project: what each brought, as far as events are kept."""

from typing import Final

from storage.query.parameters import Sql
from storage.reader.question import Question

MAX_RELEASES: Final = 500


def releases(question: Question) -> Sql:
    """Release, first and last seen (Unix ms), events, new issues and regressions; the latest seen first."""
    statement = question.statement()
    project = statement.project
    seen = (
        "SELECT release, min(first) AS since, max(last) AS until, sum(n) AS events"
        f" FROM issue_day_er WHERE {project} GROUP BY release"
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
        f" LEFT JOIN ({regressed}) AS regressed USING (release) ORDER BY until DESC, release LIMIT {MAX_RELEASES}"
    )
