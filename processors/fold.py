"""Folding increments into an issue: each counted once however often it comes, whatever else has come in between."""

from typing import Final

from msgspec.structs import replace

from processors.users import Users
from schemas.ids import hex64, issue_id
from schemas.issues import Activity, Increment, IssueRecord
from schemas.times import iso

MAX_NAMES: Final = 100
"""Releases, and environments, that an issue's aggregate names; the first and the last release always stay."""
HOURS: Final = 14 * 24
"""Hours before the newest event that an issue's aggregate counts one by one."""
SYSTEM: Final = "system"


def identity(increment: Increment) -> int:
    """The issue that an increment's fingerprint opens."""
    return issue_id(increment.project, increment.fingerprint)


def opened(increment: Increment) -> IssueRecord:
    """The issue before its first increment is folded in."""
    return IssueRecord(
        id=hex64(identity(increment)),
        project_id=str(increment.project),
        fingerprints=(hex64(increment.fingerprint),),
        error_type=increment.error_type,
        message=increment.message,
        culprit=increment.culprit,
        first_seen_ms=increment.first_ms,
        last_seen_ms=increment.last_ms,
        first_release=increment.first_release,
    )


def created(increment: Increment) -> Activity:
    """The activity of an issue's first increment; its id is the same however often it is written."""
    issue = hex64(identity(increment))
    return Activity(
        id=f"{issue}-created",
        issue=issue,
        project_id=str(increment.project),
        kind="created",
        by=SYSTEM,
        at=iso(increment.received_ms),
        data={"release": increment.first_release},
    )


class Fold:
    """An issue being folded. `record()` is its state as it is published; a fold may go on after that."""

    def __init__(self, record: IssueRecord) -> None:
        self._base = record
        self._users = Users(record.users_sketch)
        self._sketched = True
        self._events = record.events
        self._version = record.version
        self._first = (record.first_seen_ms, record.first_release)
        self._newest = (record.last_seen_ms, record.last_event)
        self._received = record.received_ms
        self._latest: Increment | None = None
        self._platforms = dict(record.platforms)
        self._releases = dict(record.releases)
        self._environments = dict(record.environments)
        self._hours = dict(record.hours)
        self._positions = dict(record.positions)

    @property
    def version(self) -> int:
        """How many increments are in."""
        return self._version

    def add(self, partition: int, offset: int, increment: Increment) -> bool:
        """Fold in what the source record at `partition`, `offset` adds; False where it is in already.

        Increments of one source partition arrive in order and are sent again from a point already covered, so one that is
        not beyond the last offset is a repeat.
        """
        if self._positions.get(partition, -1) >= offset:
            return False
        self._positions[partition] = offset
        self._version += 1
        self._events += increment.events
        self._received = max(self._received, increment.received_ms)
        if self._version == 1 or (increment.first_ms, increment.first_release) < self._first:
            self._first = (increment.first_ms, increment.first_release)
        if self._version == 1 or (increment.last_ms, increment.last_event) > self._newest:
            self._newest = (increment.last_ms, increment.last_event)
            self._latest = increment
        if increment.users:
            self._users.add(increment.users)
            self._sketched = False
        _add(self._platforms, increment.platforms)
        _add(self._releases, increment.releases)
        _add(self._environments, increment.environments)
        self._add_hours(increment.hours)
        return True

    def record(self) -> IssueRecord:
        """The state now."""
        newest = self._latest
        last_release = self._base.last_release if newest is None else newest.last_release
        _bound(self._releases, (self._first[1], last_release))
        _bound(self._environments, ())
        changed = replace(
            self._base,
            events=self._events,
            version=self._version,
            first_seen_ms=self._first[0],
            first_release=self._first[1],
            last_seen_ms=self._newest[0],
            last_event=self._newest[1],
            last_release=last_release,
            received_ms=self._received,
            platforms=dict(self._platforms),
            releases=dict(self._releases),
            environments=dict(self._environments),
            hours=dict(self._hours),
            positions=dict(self._positions),
        )
        if not self._sketched:
            changed = replace(changed, users=self._users.count, users_sketch=self._users.text())
            self._sketched = True
        if newest is not None:
            changed = replace(
                changed,
                error_type=newest.error_type,
                message=newest.message,
                culprit=newest.culprit,
                grouping_version=newest.version,
                grouping_rule=newest.rule,
                grouping_parts=newest.parts,
            )
        self._base, self._latest = changed, None
        return changed

    def _add_hours(self, hours: dict[int, int]) -> None:
        for hour, count in hours.items():
            self._hours[hour] = self._hours.get(hour, 0) + count
        if len(self._hours) > HOURS:
            oldest = max(self._hours) - HOURS
            self._hours = {hour: count for hour, count in self._hours.items() if hour > oldest}


def _add(counts: dict[str, int], more: dict[str, int]) -> None:
    for name, count in more.items():
        counts[name] = counts.get(name, 0) + count


def _bound(counts: dict[str, int], keep: tuple[str, ...]) -> None:
    """Drop the names that came first, but for those to keep."""
    surplus = len(counts) - MAX_NAMES
    if surplus > 0:
        for name in [name for name in counts if name not in keep][:surplus]:
            del counts[name]
