"""Findings of an event about its issue: first in a release or environment, users reached, escalated. Pure.

`lifecycle` judges the state of the issue.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from processors.aggregator.escalation import Hours, escalates
from schemas.increments import Increment
from schemas.issues import ESCALATING_MS, SYSTEM, Activity, ActivityKind, IssueRecord, Subject
from schemas.merges import NewEvents
from schemas.release_order import compare
from schemas.times import HOUR_MS, iso

MAX_NAMES: Final = 100
"""Most releases, and most environments, in an issue's record."""
MILESTONES: Final = tuple(step * 10**power for power in range(1, 7) for step in (1, 2, 5))
"""Numbers of users that are worth an activity: 10, 20, 50, 100, ..., 5,000,000."""


class SeenFields(NamedTuple):
    """An issue with all its fingerprints after an increment.

    `releases` and `environments` are those that no event had before.
    """

    releases: Sequence[str]
    environments: Sequence[str]
    hours: Hours
    users: int


def findings(
    record: IssueRecord, shown: SeenFields, news: NewEvents, origin: str = ""
) -> tuple[IssueRecord, list[Activity]]:
    """The record after it was judged by an increment, and the activities.

    Each finding is published once, whatever is repeated.
    """
    found: list[Activity] = []

    def add_activity(kind: ActivityKind, data: dict[str, Any]) -> None:
        found.append(by_event(record, news, origin, kind, data, len(found)))

    for release in shown.releases:
        add_activity("seenInRelease", {"release": release})
    for environment in shown.environments:
        add_activity("seenInEnvironment", {"environment": environment})
    reached = milestone(shown.users)
    if reached > record.life.reached:
        record = replace(record, life=replace(record.life, reached=reached))
        add_activity("usersReached", {"users": reached})
    hour = news.received_ms // HOUR_MS
    calm = not 0 <= news.received_ms - record.escalated_ms < ESCALATING_MS
    if calm and escalates(shown.hours, hour, record.first_seen_ms // HOUR_MS):
        record = replace(record, escalated_ms=news.received_ms)
        add_activity("escalated", {"events": sum(hours.get(hour, 0) for hours in shown.hours)})
    return record, found


def created_activity(record: IssueRecord, increment: Increment) -> Activity:
    """The activity of an issue's first increment; its id is the same at each replay."""
    return Activity(
        id=f"{record.id}-created",
        issue=record.id,
        project_id=record.project_id,
        kind="created",
        by=SYSTEM,
        at=iso(increment.received_ms),
        data={"release": increment.first_release, "environment": increment.rows[0].environment},
    )


def owner_activity(created: Activity, owner: str) -> Activity:
    """The activity of a new issue's assignment to its owner."""
    return replace(created, id=f"{created.id}-assigned", kind="assigned", data={"assignee": owner})


def with_subject(activities: Iterable[Activity], record: IssueRecord, news: NewEvents) -> Iterator[Activity]:
    """The activities of an increment, with the issue as it is after all of them."""
    subject: Subject | None = None
    for activity in activities:
        subject = subject or Subject(
            error_type=record.error_type,
            platform=max(record.platforms, key=lambda name: (record.platforms[name], name), default=""),
            release=next(reversed(news.releases), ""),
            environment=next(iter(news.environments), ""),
            first_release=record.first_release,
            first_seen_ms=record.first_seen_ms,
            last_seen_ms=record.last_seen_ms,
            events=record.events,
            users=record.users,
            status=record.status,
            regressed=record.regressed,
            assignee=record.assignee or "",
            escalated_ms=record.escalated_ms,
        )
        yield replace(activity, subject=subject)


def milestone(users: int) -> int:
    """The highest milestone that this number of users has reached, or 0."""
    reached = bisect_right(MILESTONES, users)
    return MILESTONES[reached - 1] if reached else 0


def next_milestone(reached: int) -> int:
    """The milestone after one that was reached; far more than there are users after the last."""
    following = bisect_right(MILESTONES, reached)
    return MILESTONES[following] if following < len(MILESTONES) else 1 << 62


def names_of(parts: Iterable[Mapping[str, int]]) -> set[str]:
    """The names that the parts have together."""
    return {name for part in parts for name in part}


def new_names(names: Iterable[str], known: Collection[str]) -> list[str]:
    """The names that are not known.

    A record that may be full lacks names. Then it is unknown which environments the issue had, and a release
    is new if it is newer than all known ones with which its name can be compared.
    """
    new = [name for name in dict.fromkeys(names) if name and name not in known]
    return new if len(known) < MAX_NAMES - 1 else [name for name in new if _is_newest(name, known)]


def _is_newest(release: str, known: Iterable[str]) -> bool:
    newer = False
    for name in known:
        order = compare(release, name)
        if order is not None and order <= 0:
            return False
        newer = newer or order is not None
    return newer


def by_event(
    record: IssueRecord,
    news: NewEvents,
    origin: str,
    kind: ActivityKind,
    data: dict[str, Any],
    number: int = 0,
) -> Activity:
    """The activity that an increment causes.

    `origin` is the merged issue that received it, `number` tells several activities of one kind apart.
    """
    position = f"{news.partition}-{news.offset}" + (f"-{origin}" if origin else "")
    return Activity(
        id=f"{record.id}-{position}-{kind}" + (f"-{number}" if number else ""),
        issue=record.id,
        project_id=record.project_id,
        kind=kind,
        by=SYSTEM,
        at=iso(news.received_ms),
        data=data,
    )
