"""Counts of what became of events and requests, and of grouping rules that were skipped on events."""

from schemas.issues import RULE_SKIPPED
from storage.reader.answers import Interval
from storage.reader.counts import UNIT_MS
from storage.reader.parameters import Sql
from storage.reader.question import Question


def outcomes(question: Question, interval: Interval | None) -> Sql:
    """Start of the interval (Unix ms, 0 where none is asked for), outcome, SDK, reason and count. Ranges are of whole minutes."""
    statement = question.statement()
    size = UNIT_MS[interval] if interval else 0
    bucket = f"intDiv(toInt64(toUnixTimestamp(minute)) * 1000, {size}) * {size}" if size else "toInt64(0)"
    return statement.ready(
        f"SELECT {bucket} AS bucket, outcome, sdk, reason, sum(count) FROM outcomes FINAL WHERE {statement.project}"
        f" AND outcome != '{RULE_SKIPPED}'"
        f" AND {statement.within('minute', question.span, 'hour')} GROUP BY bucket, outcome, sdk, reason"
        " ORDER BY bucket, outcome, sdk, reason"
    )


def rules_skipped(question: Question) -> Sql:
    """Reason (`tooDear` or `failed`, `/` and the rule's name) and about how many events."""
    statement = question.statement()
    return statement.ready(
        f"SELECT reason, sum(count) FROM outcomes FINAL WHERE {statement.project} AND outcome = '{RULE_SKIPPED}'"
        f" AND {statement.within('minute', question.span, 'hour')} GROUP BY reason ORDER BY reason"
    )
