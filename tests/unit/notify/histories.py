"""Random causes and rules."""

import random
from typing import Any

from schemas.issues import Subject
from schemas.notifications import CAUSES, DAYS, Cause, CauseKind, NotificationRule, QuietHours
from schemas.times import DAY_MS, HOUR_MS, MINUTE_MS, iso

START = 1_790_000_000_000
QUERIES = (
    "",
    "environment:prod",
    "release:shop@2*",
    "type:[TypeError, IOError] -platform:ios",
    "is:new OR is:regressed",
    "is:escalating users:>20",
    "firstSeen:>-2d -has:assignee",
    "assignee:ann OR events:>=50",
)


def cause(
    number: int, kind: CauseKind = "created", at_ms: int = START, project: str = "1", **subject: Any
) -> Cause:
    values = {"usersReached": "100", "escalated": "250"}
    return Cause(
        f"cause-{number}",
        project,
        f"{number % 7:016x}",
        kind,
        iso(at_ms),
        Subject(**({"first_seen_ms": at_ms, "last_seen_ms": at_ms} | subject)),
        values.get(kind, "shop@1.0.0+1"),
    )


def any_cause(luck: random.Random, number: int, at_ms: int) -> Cause:
    return cause(
        number,
        luck.choice(CAUSES),
        at_ms - luck.randrange(5000),
        luck.choice(("1", "1", "2")),
        error_type=luck.choice(("TypeError", "IOError", "E")),
        platform=luck.choice(("python", "ios")),
        release=luck.choice(("shop@1.0.0+1", "shop@2.0.0+1")),
        environment=luck.choice(("prod", "test")),
        first_seen_ms=at_ms - luck.randrange(4 * DAY_MS),
        events=luck.randrange(200),
        users=luck.randrange(60),
        status=luck.choice(("open", "open", "open", "ignored")),
        regressed=luck.random() < 0.3,
        assignee=luck.choice(("", "ann")),
        escalated_ms=at_ms - luck.randrange(2 * DAY_MS),
    )


def any_rule(luck: random.Random, number: int) -> NotificationRule:
    quiet = None
    if luck.random() < 0.4:
        start, end = (f"{luck.randrange(24):02}:{luck.randrange(60):02}" for _ in range(2))
        zone = luck.choice(("UTC", "Europe/Berlin", "Asia/Kathmandu"))
        quiet = QuietHours(start, end, zone, tuple(luck.sample(DAYS, luck.randrange(3))))
    return NotificationRule(
        f"{number:016x}",
        f"rule {number}",
        tuple(luck.sample(CAUSES, luck.randrange(1, 1 + len(CAUSES)))),
        tuple(luck.sample(("mail", "chat", "hook"), luck.randrange(1, 3))),
        luck.choice(QUERIES),
        users=luck.choice((0, 50, 1000)),
        digest_minutes=luck.choice((0, 0, 5, 60, 1440)),
        most_per_hour=luck.choice((0, 0, 1, 3)),
        quiet=quiet,
        enabled=luck.random() < 0.95,
    )


def times(luck: random.Random, many: int) -> list[int]:
    """Times in order, in bursts and with long pauses."""
    now, found = START, list[int]()
    for _ in range(many):
        now += luck.choice(
            (0, 0, 300, luck.randrange(MINUTE_MS), luck.randrange(HOUR_MS), luck.randrange(10 * HOUR_MS))
        )
        found.append(now)
    return found
