"""Calls that count: series, releases, outcomes."""

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
from storage.reader.session import Session


async def issue_stats(
    session: Session, issue: str, query: str, interval: Interval | None, start: int | None, end: int | None
) -> Series:
    """Events and users of an issue by interval."""
    place = await session.place(issue)
    asked = session.question(place.project_id, query, start, end)
    chosen = series.chosen_interval(interval, asked.span, asked.now_ms)
    rows = await session.rows(series.counts(asked, place.fingerprints, chosen))
    return series.filled(rows, asked.span, chosen, asked.now_ms)


async def project_stats(
    session: Session, project: int, query: str, interval: Interval | None, start: int | None, end: int | None
) -> Series:
    """Events and users of a project by interval."""
    asked = session.question(project, query, start, end)
    chosen = series.chosen_interval(interval, asked.span, asked.now_ms)
    rows = await session.rows(series.counts(asked, None, chosen))
    return series.filled(rows, asked.span, chosen, asked.now_ms)


async def releases(session: Session, project: int, limit: int, cursor: str | None) -> Releases:
    """A page of a project's releases, the newest first."""
    page_limit(limit)
    last = read_cursor(cursor, ReleaseCursor)
    found = await session.rows(versions.page(session.question_ever(project, "", None, None), limit, last))
    rows, more = found[:limit], len(found) > limit
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


async def rules_skipped(session: Session, project: int) -> list[RuleSkipped]:
    """The grouping rules that were skipped on events of the last 14 days."""
    rows = await session.rows(endings.rules_skipped(session.question(project, "", None, None)))
    return [
        RuleSkipped(name, kind, int(count))
        for reason, count in rows
        for kind, _, name in [reason.partition("/")]
    ]


async def outcomes(
    session: Session, project: int, start: int | None, end: int | None, interval: Interval | None
) -> OutcomeSeries:
    """What became of events and requests."""
    asked = session.question(project, "", start, end)
    if interval is not None:
        interval = series.chosen_interval(interval, asked.span, asked.now_ms)
    rows = await session.rows(endings.outcomes(asked, interval))
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
