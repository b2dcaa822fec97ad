"""Issues by their records of the topic `issues`: the answer to a change that was made, whatever ClickHouse shows by then."""

from collections import Counter

from schemas.issues import IssueRecord, encode_json
from schemas.times import parse_iso
from storage.reader.answers import Issue
from storage.reader.counts import UNIT_MS
from storage.reader.issue_rows import IssueRow, RangeCounts, answer
from storage.reader.ranges import HOUR_MS, floor, resolve_range
from storage.reader.trend import trend_counts, trend_unit


def row_of(record: IssueRecord, now_ms: int) -> IssueRow:
    """The row that a record becomes in `issues`."""
    platforms = record.platforms
    return IssueRow(
        project_id=int(record.project_id),
        issue_id=int(record.id, 16),
        fingerprints=[int(fingerprint, 16) for fingerprint in record.fingerprints],
        error_type=record.error_type,
        message=record.message,
        culprit=record.culprit,
        platform=max(platforms, key=lambda name: (platforms[name], name), default=""),
        status="open" if _has_woken(record, now_ms) else record.status,
        regressed=int(record.regressed),
        first_seen=record.first_seen_ms,
        last_seen=record.last_seen_ms,
        events=record.events,
        users=record.users,
        first_release=record.first_release,
        last_release=record.last_release,
        environments=sorted(record.environments),
        assignee=record.assignee or "",
        resolved_in=record.resolved_in or "",
        ignore_until=encode_json(record.ignore_until).decode() if record.ignore_until else "",
        merged_into=int(record.merged_into, 16) if record.merged_into else 0,
    )


def issue_of(record: IssueRecord, now_ms: int) -> Issue:
    """The issue with what its record has counted in the last 14 days: events by the hour; users at most, since they are known for life only."""
    span = resolve_range(None, None, now_ms)
    hours = {hour * HOUR_MS: events for hour, events in record.hours.items() if hour * HOUR_MS >= span.start}
    events, unit = sum(hours.values()), UNIT_MS[trend_unit(span, now_ms)]
    trend: Counter[int] = Counter()
    for hour, many in hours.items():
        trend[floor(hour, unit)] += many
    counted = RangeCounts(events, min(record.users, events), tuple(trend_counts(trend, span, now_ms)))
    return answer(row_of(record, now_ms), counted)


def _has_woken(record: IssueRecord, now_ms: int) -> bool:
    """Whether it was ignored until a time that has passed: as `storage.reader.issue_states` reads it."""
    time = (record.ignore_until or {}).get("time")
    return record.status == "ignored" and time is not None and parse_iso(time) <= now_ms
