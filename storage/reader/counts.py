"""Statements that count events and users by fingerprint, from the smallest tables that together give the exact range."""

from typing import Final, Literal

from storage.reader.question import Statement
from storage.reader.ranges import DAY_MS, HOUR_MS, Range, cut

USERS_STATE: Final = "uniqCombinedStateIf(12)(user_hash, user_hash != 0)"
USERS_MERGED: Final = "least(sum(n), uniqCombinedMerge(12)(users))"
"""An estimate, so it is kept from exceeding the events."""
Unit = Literal["minute", "hour", "day"]
UNIT_MS: Final[dict[Unit, int]] = {"minute": 60_000, "hour": HOUR_MS, "day": DAY_MS}


def by_fingerprint(statement: Statement, fingerprints: str = "", users: bool = True) -> str:
    """SELECTs joined by UNION ALL with columns fingerprint, n and, if asked for, states of users.

    `fingerprints` is a condition that narrows them; the same fingerprint can come several times.
    """
    question = statement.question
    narrowed = f" AND {fingerprints}" if fingerprints else ""
    extra = ", users" if users else ""
    if question.level == "events":
        return _events(statement, question.span, narrowed, users)
    pieces = cut(question.span, HOUR_MS if question.level == "rollup" else DAY_MS)
    table, event = (
        ("issue_day", "") if question.level == "rollup" else ("issue_day_er", f" AND {statement.event}")
    )
    selects = [
        f"SELECT fingerprint, n{extra} FROM {table} WHERE {statement.project}"
        f" AND {statement.within('day', span, 'day')}{narrowed}{event}"
        for span in pieces.days
    ]
    selects += [
        f"SELECT fingerprint, n{extra} FROM issue_hour WHERE {statement.project}"
        f" AND {statement.within('hour', span, 'hour')}{narrowed}"
        for span in pieces.hours
    ]
    selects += [_events(statement, span, narrowed, users) for span in pieces.edges]
    return " UNION ALL ".join(selects)


def _events(statement: Statement, span: Range, narrowed: str, users: bool) -> str:
    extra = f", {USERS_STATE} AS users" if users else ""
    return (
        f"SELECT fingerprint, count() AS n{extra} FROM events WHERE {statement.project}"
        f" AND {statement.within('ts', span)}{narrowed} AND {statement.event} GROUP BY fingerprint"
    )


def by_bucket(statement: Statement, span: Range, unit: Unit, fingerprints: str = "") -> str:
    """A SELECT with columns fingerprint, bucket (Unix ms of its start) and n; `span` is of whole units."""
    level = statement.question.level
    narrowed = f" AND {fingerprints}" if fingerprints else ""
    if unit == "day" and level != "events":
        table, event = ("issue_day", "") if level == "rollup" else ("issue_day_er", f" AND {statement.event}")
        return (
            f"SELECT fingerprint, toInt64(toUnixTimestamp(toDateTime(day, 'UTC'))) * 1000 AS bucket, n FROM {table}"
            f" WHERE {statement.project} AND {statement.within('day', span, 'day')}{narrowed}{event}"
        )
    if unit == "hour" and level == "rollup":
        return (
            f"SELECT fingerprint, toInt64(toUnixTimestamp(hour)) * 1000 AS bucket, n FROM issue_hour"
            f" WHERE {statement.project} AND {statement.within('hour', span, 'hour')}{narrowed}"
        )
    return (
        f"SELECT fingerprint, {bucket_of('ts', unit)} AS bucket, count() AS n FROM events WHERE {statement.project}"
        f" AND {statement.within('ts', span)}{narrowed} AND {statement.event} GROUP BY fingerprint, bucket"
    )


def bucket_of(column: str, unit: Unit) -> str:
    """The Unix ms at which the unit of a column of times begins."""
    return f"intDiv(toUnixTimestamp64Milli({column}), {UNIT_MS[unit]}) * {UNIT_MS[unit]}"
