"""Calls that count: series, releases, outcomes."""

from collections.abc import Sequence

from schemas.times import iso
from storage.reader import outcomes as endings
from storage.reader import releases as versions
from storage.reader import series
from storage.reader.answers import (
    Interval,
    OutcomeCount,
    OutcomeSeries,
    Release,
    Releases,
    RuleSkipped,
    Series,
)
from storage.reader.cursors import ReleaseCursor, read_cursor, write_cursor
from storage.reader.identifiers import page_limit
from storage.reader.port import IssueCall, ProjectCall, ReadCall
from storage.reader.question import Question
from storage.reader.session import Session


class GetIssueStats(IssueCall[Series], frozen=True):
    """Events and users of an issue by interval, without gaps."""

    interval: Interval | None = None

    async def answer(self, session: Session) -> Series:
        """The series; without `interval` it fits the range."""
        issue_ref = await session.issue_ref(self.issue)
        question = self.question(session, issue_ref.project_id)
        return await _series(session, question, issue_ref.fingerprints, self.interval)


class GetProjectStats(ProjectCall[Series], frozen=True):
    """Events and users of a project by interval, without gaps."""

    interval: Interval | None = None

    async def answer(self, session: Session) -> Series:
        """The series; without `interval` it fits the range."""
        return await _series(session, self.question(session), None, self.interval)


async def _series(
    session: Session, question: Question, fingerprints: Sequence[int] | None, interval: Interval | None
) -> Series:
    chosen = series.chosen_interval(interval, question.span, question.now_ms)
    rows = await session.rows(series.counts(question, fingerprints, chosen))
    return series.filled(rows, question.span, chosen, question.now_ms)


class ListReleases(ReadCall[Releases], frozen=True):
    """A page of a project's releases, the newest first."""

    project: int
    limit: int = 50
    cursor: str | None = None

    async def answer(self, session: Session) -> Releases:
        """The page."""
        page_limit(self.limit)
        last = read_cursor(self.cursor, ReleaseCursor)
        question = session.question_ever(self.project, "", None, None)
        found = await session.rows(versions.page(question, self.limit, last))
        rows, more = found[: self.limit], len(found) > self.limit
        return Releases(
            releases=[
                Release(
                    release=release,
                    first_seen=iso(since),
                    last_seen=iso(until),
                    events=int(events),
                    new_issues=int(new),
                    regressions=int(regressions),
                )
                for release, since, until, events, new, regressions in rows
            ],
            next_cursor=write_cursor(ReleaseCursor(int(rows[-1][1]), rows[-1][0])) if more else None,
        )


class ListSkippedRules(ReadCall[list[RuleSkipped]], frozen=True):
    """The grouping rules that were skipped on events of the last 14 days."""

    project: int

    async def answer(self, session: Session) -> list[RuleSkipped]:
        """The rules, each with the kind of its skipping and how often."""
        rows = await session.rows(endings.rules_skipped(session.question(self.project, "", None, None)))
        return [
            RuleSkipped(name, kind, int(count))
            for reason, count in rows
            for kind, _, name in [reason.partition("/")]
        ]


class CountOutcomes(ReadCall[OutcomeSeries], frozen=True):
    """What became of events and requests, by outcome, SDK and reason; with `interval` also by time."""

    project: int
    start: int | None = None
    end: int | None = None
    interval: Interval | None = None

    async def answer(self, session: Session) -> OutcomeSeries:
        """The counts."""
        question = session.question(self.project, "", self.start, self.end)
        interval = self.interval
        if interval is not None:
            interval = series.chosen_interval(interval, question.span, question.now_ms)
        rows = await session.rows(endings.outcomes(question, interval))
        return OutcomeSeries(
            [
                OutcomeCount(
                    time=iso(bucket) if interval else None,
                    outcome=outcome,
                    sdk=sdk,
                    reason=reason,
                    count=int(count),
                )
                for bucket, outcome, sdk, reason, count in rows
            ]
        )
