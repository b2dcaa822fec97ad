"""Counts over time, of releases, of outcomes, of skipped grouping rules and revoked tokens.

The counts over time are events and users by interval.
"""

from collections.abc import Iterable, Sequence
from typing import Final, Literal

from query.tree import EVERYTHING
from schemas.issues import NOT_OF_EVENTS, REVOKED, RULE_SKIPPED
from schemas.read_api import (
    Interval,
    Issue,
    OutcomeCount,
    OutcomeExample,
    OutcomeSeries,
    Point,
    Release,
    Releases,
    RevokedTokenCount,
    RuleSkipped,
    Series,
)
from schemas.times import DAY_MS, HOUR_MS, iso
from storage.errors import BadQuery
from storage.read.counts.range_counts import DAY_START, HOUR_START, USERS_MERGED, USERS_STATE, bucket_of
from storage.read.execute import Sql
from storage.read.issue_rows import RangeCounts, to_issue
from storage.read.query.cursors import ReleaseCursor, read_cursor, write_cursor
from storage.read.query.query_sql import event_condition
from storage.read.query.question import Question, Statement
from storage.read.query.ranges import UNIT_MS, Range, cut, floor, whole
from storage.read.reader import IssueCall, ProjectCall, RangeCall, ReadCall, Session, check_limit

MAX_POINTS: Final = 2000
_STARTS: Final = {
    ("day", "day"): DAY_START,
    ("hour", "day"): f"intDiv({HOUR_START}, {DAY_MS}) * {DAY_MS}",
    ("hour", "hour"): HOUR_START,
}
"""Start of an interval (Unix ms) by column and interval."""
_EXAMPLE: Final = (
    "argMaxIf(example, minute, example != ''), toInt64(toUnixTimestamp(maxIf(minute, example != ''))) * 1000"
)
_Source = tuple[str, Literal["day", "hour"], Range]
"""A table, its time column, and the part of the range that is read from it."""


class GetIssueStats(IssueCall[Series], frozen=True):
    """Events and users of an issue by interval, without gaps."""

    interval: Interval | None = None

    async def fetch(self, session: Session) -> Series:
        """The series; by default the interval depends on the length of the range."""
        row = await session.issue(self.issue)
        question = self.question(session, row.project_id)
        return await _series(session, question, row.fingerprints, self.interval)


class GetIssueWithStats(IssueCall[tuple[Issue, Series]], frozen=True):
    """An issue and its series, both of the events in range and query; the issue has no trend."""

    interval: Interval | None = None

    async def fetch(self, session: Session) -> tuple[Issue, Series]:
        row = await session.issue(self.issue)
        question = self.question(session, row.project_id)
        interval = chosen_interval(self.interval, question.span, question.now_ms)
        rows = await session.rows(_by_interval(question, row.fingerprints, interval, total=True))
        total = next(
            (RangeCounts(events, users) for _, events, users, is_total in rows if is_total), RangeCounts()
        )
        series = filled((point for point in rows if not point[3]), question.span, interval, question.now_ms)
        return to_issue(row, total), series


class GetProjectStats(ProjectCall[Series], frozen=True):
    """Events and users of a project by interval, without gaps."""

    interval: Interval | None = None

    async def fetch(self, session: Session) -> Series:
        """The series; by default the interval depends on the length of the range."""
        return await _series(session, self.question(session), None, self.interval)


class ListReleases(ReadCall[Releases], frozen=True):
    """A page of a project's releases, newest first."""

    project: int
    limit: int = 50
    cursor: str | None = None

    async def fetch(self, session: Session) -> Releases:
        check_limit(self.limit)
        last = read_cursor(self.cursor, ReleaseCursor)
        rows = await session.rows(_releases(session.question_ever(self.project), self.limit, last))
        page = rows[: self.limit]
        more = len(rows) > self.limit
        return Releases(
            releases=[
                Release(
                    release=release,
                    first_seen=iso(first),
                    last_seen=iso(last_seen),
                    events=int(events),
                    new_issues=int(new),
                    regressions=int(regressions),
                )
                for release, first, last_seen, events, new, regressions in page
            ],
            next_cursor=write_cursor(ReleaseCursor(int(page[-1][1]), page[-1][0])) if more else None,
        )


class ListSkippedRules(ReadCall[list[RuleSkipped]], frozen=True):
    """The grouping rules that were skipped for events of the last 14 days."""

    project: int

    async def fetch(self, session: Session) -> list[RuleSkipped]:
        """The rules, each with the kind of skip and the number of events."""
        rows = await session.rows(_rules_skipped(session.question(self.project)))
        return [
            RuleSkipped(name, kind, int(count))
            for reason, count in rows
            for kind, _, name in [reason.partition("/")]
        ]


class ListRevokedTokens(RangeCall[list[RevokedTokenCount]], frozen=True):
    """The requests with a revoked token, by token and SDK: the most frequent first, at most 50."""

    async def fetch(self, session: Session) -> list[RevokedTokenCount]:
        """The tokens, each with SDK, count, and when it was last used."""
        question = self.question(session)
        return [
            RevokedTokenCount(token, sdk, int(count), iso(last))
            for token, sdk, count, last in await session.rows(_revoked(question))
        ]


class CountOutcomes(RangeCall[OutcomeSeries], frozen=True):
    """Outcomes of events and requests, by outcome, SDK and reason; with `interval` also by time."""

    interval: Interval | None = None

    async def fetch(self, session: Session) -> OutcomeSeries:
        question = self.question(session)
        interval = self.interval
        if interval is not None:
            interval = chosen_interval(interval, question.span, question.now_ms)
        rows = await session.rows(_outcomes(question, interval))
        return OutcomeSeries(
            [
                OutcomeCount(
                    time=iso(bucket) if interval else None,
                    outcome=outcome,
                    sdk=sdk,
                    reason=reason,
                    count=int(count),
                    example=OutcomeExample(iso(at), example) if example else None,
                )
                for bucket, outcome, sdk, reason, count, example, at in rows
            ]
        )


async def _series(
    session: Session, question: Question, fingerprints: Sequence[int] | None, interval: Interval | None
) -> Series:
    chosen = chosen_interval(interval, question.span, question.now_ms)
    rows = await session.rows(_by_interval(question, fingerprints, chosen))
    return filled(rows, question.span, chosen, question.now_ms)


def chosen_interval(interval: Interval | None, span: Range, now_ms: int) -> Interval:
    """The requested interval, by default one that suits the range.

    Raises BadQuery if there would be too many points.
    """
    length = span.length(now_ms)
    if interval is None:
        interval = "minute" if length <= 2 * HOUR_MS else "hour" if length <= 7 * DAY_MS + HOUR_MS else "day"
    if interval not in UNIT_MS:
        raise BadQuery("interval", f"one of {', '.join(UNIT_MS)}")
    if length // UNIT_MS[interval] > MAX_POINTS:
        raise BadQuery(
            "interval", f"at most {MAX_POINTS} intervals: use a shorter range or a longer interval"
        )
    return interval


def _by_interval(
    question: Question, fingerprints: Sequence[int] | None, interval: Interval, *, total: bool = False
) -> Sql:
    """An interval's start (Unix ms), events, users and 0; with `total` also a row that ends in 1, of the range."""
    statement = question.statement()
    selects = " UNION ALL ".join(_selects(statement, interval, _narrowed(statement, fingerprints)))
    by = "ROLLUP(bucket)" if total else "bucket"
    is_total = "grouping(bucket)" if total else "0"
    return statement.ready(
        f"SELECT bucket, sum(n), {USERS_MERGED}, {is_total} FROM ({selects}) GROUP BY {by}"
    )


def filled(rows: Iterable[Sequence[int]], span: Range, interval: Interval, now_ms: int) -> Series:
    """Rows of an interval's start (Unix ms), events and users as a series without gaps."""
    counts = {int(bucket): (int(events), int(users)) for bucket, events, users, *_ in rows}
    size = UNIT_MS[interval]
    first = floor(span.start, size)
    last = max(floor(now_ms, size), *counts, first) if span.end is None else floor(span.end - 1, size)
    return Series(
        series=[Point(iso(start), *counts.get(start, (0, 0))) for start in range(first, last + 1, size)],
        interval=interval,
    )


def _narrowed(statement: Statement, fingerprints: Sequence[int] | None) -> str:
    """A condition on fingerprints alone, empty for the whole project."""
    conditions = []
    if fingerprints is not None:
        conditions.append(f"fingerprint IN {statement.numbers(fingerprints)}")
    if statement.question.of_issue != EVERYTHING:
        conditions.append(event_condition(statement.question.of_issue, statement.scope))
    return "".join(f" AND {condition}" for condition in conditions)


def _selects(statement: Statement, interval: Interval, narrowed: str) -> Iterable[str]:
    question = statement.question
    by_deployment = question.level == "deployment" and interval == "day"
    if interval == "minute" or (question.level != "rollup" and not by_deployment):
        return [_from_events(statement, question.span, interval, narrowed)]
    pieces = cut(question.span, DAY_MS if by_deployment else HOUR_MS)
    selects = [_from_events(statement, span, interval, narrowed) for span in pieces.edges]
    event = f" AND {statement.event}" if by_deployment else ""
    selects += [
        f"SELECT {_STARTS[column, interval]} AS bucket, n, users FROM {table} WHERE {statement.project}"
        f" AND {statement.within(column, span, column)}{narrowed}{event}"
        for table, column, span in _sources(question, interval, by_deployment, bool(narrowed))
    ]
    return selects


def _sources(question: Question, interval: Interval, by_deployment: bool, narrowed: bool) -> list[_Source]:
    """The tables that have the whole units of a range.

    They are as few as possible, because ClickHouse plans each one separately.
    """
    if interval == "day" and (by_deployment or narrowed):
        pieces = cut(question.span, DAY_MS if by_deployment else HOUR_MS)
        days = "issue_day_er" if by_deployment else "issue_day"
        return [
            *((days, "day", span) for span in pieces.days),
            *(("issue_hour", "hour", span) for span in pieces.hours),
        ]
    inner, _ = whole(question.span, HOUR_MS)
    return [("issue_hour" if narrowed else "project_hour", "hour", inner)] if inner else []


def _from_events(statement: Statement, span: Range, interval: Interval, narrowed: str) -> str:
    return (
        f"SELECT {bucket_of(interval)} AS bucket, count() AS n, {USERS_STATE} AS users FROM events"
        f" WHERE {statement.project} AND {statement.within('ts', span)}{narrowed} AND {statement.event} GROUP BY bucket"
    )


def _releases(question: Question, limit: int, cursor: ReleaseCursor | None) -> Sql:
    """Release, first and last seen (Unix ms), events, new issues and regressions of the newest releases.

    Up to one more than the limit. Ordered by the first event, which never changes: ordered by the last, a
    release in use would climb past the cursor.
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
        f" FROM issue_day_er WHERE {project} GROUP BY release HAVING events > 0{after}"
        f" ORDER BY since DESC, release LIMIT {limit + 1:d}"
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


def _outcomes(question: Question, interval: Interval | None) -> Sql:
    """Start of the interval, outcome, SDK, reason, count, newest example and its minute.

    Start and minute are Unix ms; the start is 0 without intervals. Ranges are of whole minutes. With
    intervals there are no examples.
    """
    statement = question.statement()
    size = UNIT_MS[interval] if interval else 0
    bucket = f"intDiv(toInt64(toUnixTimestamp(minute)) * 1000, {size}) * {size}" if size else "toInt64(0)"
    example = "'', 0" if size else _EXAMPLE
    return statement.ready(
        f"SELECT {bucket} AS bucket, outcome, sdk, reason, sum(count), {example}"
        f" FROM outcomes FINAL WHERE {statement.project}"
        f" AND outcome NOT IN {NOT_OF_EVENTS}"
        f" AND {statement.within('minute', question.span, 'hour')} GROUP BY bucket, outcome, sdk, reason"
        " ORDER BY bucket, outcome, sdk, reason"
    )


def _rules_skipped(question: Question) -> Sql:
    """Reason (`tooExpensive` or `failed`, `/` and the rule's name) and the approximate number of events."""
    statement = question.statement()
    return statement.ready(
        f"SELECT reason, sum(count) FROM outcomes FINAL WHERE {statement.project} AND outcome = '{RULE_SKIPPED}'"
        f" AND {statement.within('minute', question.span, 'hour')} GROUP BY reason ORDER BY reason"
    )


def _revoked(question: Question) -> Sql:
    """The end of a token, SDK, count and the last minute (Unix ms) of requests with a revoked token."""
    statement = question.statement()
    return statement.ready(
        "SELECT reason, sdk, sum(count) AS n, toInt64(toUnixTimestamp(max(minute))) * 1000"
        f" FROM outcomes FINAL WHERE {statement.project} AND outcome = '{REVOKED}'"
        f" AND {statement.within('minute', question.span, 'hour')} GROUP BY reason, sdk"
        f" ORDER BY n DESC, reason, sdk LIMIT 50"
    )
