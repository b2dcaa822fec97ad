"""Compares two releases of a project: which issues are new, gone, worse or better.

The measure is an issue's share of the release's events.
"""

from typing import Final

from schemas.ids import hex64
from schemas.read_api import ComparedIssue, ReleaseComparison, Verdict
from storage.read.execute import Sql
from storage.read.query.question import Question
from storage.read.reader import ReadCall, Session

MAX_COMPARED: Final = 500
_RATIO: Final = 1.5
_FEW: Final = 10


class CompareReleases(ReadCall[ReleaseComparison], frozen=True):
    """The issues of two releases, the largest first, at most `MAX_COMPARED`.

    By default these are the newest release and the one before it.
    """

    project: int
    before: str = ""
    after: str = ""

    async def fetch(self, session: Session) -> ReleaseComparison:
        question = session.question_ever(self.project)
        newest = [] if self.before and self.after else await session.rows(_newest(question))
        names = [str(name) for (name,) in newest] + ["", ""]
        first, second = self.before or names[1], self.after or names[0]
        (totals,) = await session.rows(_totals(question, first, second))
        before, after = map(int, totals)
        rows = await session.rows(_issues(question, first, second))
        return ReleaseComparison(
            before_release=first,
            after_release=second,
            before=before,
            after=after,
            issues=[
                ComparedIssue(
                    id=hex64(number),
                    error_type=error_type,
                    message=message,
                    status=status,
                    before=int(old),
                    after=int(new),
                    verdict=verdict(int(old), int(new), before, after),
                )
                for number, error_type, message, status, old, new in rows
            ],
        )


def verdict(old: int, new: int, before: int, after: int) -> Verdict:
    """The verdict on an issue with `old` of `before` events in one release and `new` of `after` in the other.

    Worse or better are shares that differ by half, of ten events at least: below that it is chance.
    """
    if not old or not new:
        return "gone" if old else "new"
    ratio = (new / after) / (old / before)
    if old + new < _FEW or 1 / _RATIO < ratio < _RATIO:
        return "same"
    return "worse" if ratio > 1 else "better"


def _newest(question: Question) -> Sql:
    statement = question.statement()
    return statement.ready(
        f"SELECT release FROM issue_day_er WHERE {statement.project} AND release != '' GROUP BY release"
        " HAVING sum(n) > 0 ORDER BY min(first) DESC, release LIMIT 2"
    )


def _totals(question: Question, before: str, after: str) -> Sql:
    statement = question.statement()
    old, new = (statement.parameters.add(name, "String") for name in (before, after))
    return statement.ready(
        f"SELECT sumIf(n, release = {old}), sumIf(n, release = {new}) FROM issue_day_er"
        f" WHERE {statement.project} AND release IN ({old}, {new})"
    )


def _issues(question: Question, before: str, after: str) -> Sql:
    """Number, type, message, status and events in both releases of each issue that has any."""
    statement = question.statement()
    old, new = (statement.parameters.add(name, "String") for name in (before, after))
    counted = (
        f"SELECT fingerprint, sumIf(n, release = {old}) AS a, sumIf(n, release = {new}) AS b FROM issue_day_er"
        f" WHERE {statement.project} AND release IN ({old}, {new}) GROUP BY fingerprint HAVING a + b > 0"
    )
    known = (
        "SELECT issue_id, error_type, message, status, arrayJoin(fingerprints) AS fingerprint"
        f" FROM {statement.issues}"
    )
    return statement.ready(
        "SELECT issue_id, any(error_type), any(message), any(status), sum(a) AS old, sum(b) AS new"
        f" FROM ({counted}) AS counted INNER JOIN ({known}) AS known USING (fingerprint)"
        f" GROUP BY issue_id ORDER BY old + new DESC, issue_id LIMIT {MAX_COMPARED:d}"
    )
