"""Folding increments into an issue: each counted once however often it comes, whatever else has come in between."""

from typing import Final

from msgspec.structs import replace

from processors.figures import figures, own, recent, whole
from processors.identity import issue_key
from processors.users import Users
from schemas.ids import hex64
from schemas.issues import Activity, Increment, IssueRecord, decode_issue, encode_json
from schemas.merges import Figures
from schemas.times import iso

MAX_NAMES: Final = 100
"""Releases, and environments, that an issue's aggregate names; the first and the last release always stay."""
SYSTEM: Final = "system"


def opened(increment: Increment) -> IssueRecord:
    """The issue before its first increment is folded in."""
    return IssueRecord(
        id=issue_key(increment.project, increment.fingerprint),
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
    issue = issue_key(increment.project, increment.fingerprint)
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
    """An issue being folded. A fold may go on after its state was taken.

    It counts its own fingerprint; figures of merged issues are added when the state is taken.
    """

    def __init__(self, published: IssueRecord) -> None:
        record = own(published)
        self._base = record
        self._users: Users | None = None
        self._sketched = True
        self._events = record.events
        self._version = self._taken = record.version
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
    def id(self) -> str:
        """The issue's id."""
        return self._base.id

    @property
    def version(self) -> int:
        """How many increments, commands and signals are in."""
        return self._version

    @property
    def state(self) -> IssueRecord:
        """Status, merges and all else that is no count; for counts see `record`."""
        return self._base

    def keep(self, state: IssueRecord) -> None:
        """Take over a state that came of an increment which is in."""
        self._base = replace(
            self._base,
            status=state.status,
            regressed=state.regressed,
            assignee=state.assignee,
            resolved_in=state.resolved_in,
            ignore_until=state.ignore_until,
            merged_into=state.merged_into,
            life=replace(state.life, home=None),
        )

    def settle(self, state: IssueRecord) -> None:
        """Take over a state that came of a command or signal."""
        self.keep(state)
        self._version += 1

    def grown(self) -> int:
        """By how much the version has grown since this was asked last, or since the record was read."""
        grown, self._taken = self._version - self._taken, self._version
        return grown

    def figures(self) -> Figures:
        """What its own fingerprint has counted, a value of its own."""
        return figures(own(self.record()))

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
            if self._users is None:
                self._users = Users(self._base.users_sketch)
            self._users.add(increment.users)
            self._sketched = False
        _add(self._platforms, increment.platforms)
        _add(self._releases, increment.releases)
        _add(self._environments, increment.environments)
        self._add_hours(increment.hours)
        return True

    def record(self) -> IssueRecord:
        """The state now, a value of its own."""
        return decode_issue(self.encoded())

    def encoded(self) -> bytes:
        """The state now, as it is published."""
        record = self._now()
        return encode_json(whole(record) if record.life.members else record)

    def _now(self) -> IssueRecord:
        """The state of its own fingerprint; its maps are those that the fold goes on with."""
        if self._latest is not None:
            self._base = _described(self._base, self._latest)
            self._latest = None
        if self._users is not None and not self._sketched:
            self._base = replace(self._base, users=self._users.count, users_sketch=self._users.text())
            self._sketched = True
        _bound(self._releases, (self._first[1], self._base.last_release))
        _bound(self._environments, ())
        return replace(
            self._base,
            events=self._events,
            version=self._version,
            first_seen_ms=self._first[0],
            first_release=self._first[1],
            last_seen_ms=self._newest[0],
            last_event=self._newest[1],
            received_ms=self._received,
            platforms=self._platforms,
            releases=self._releases,
            environments=self._environments,
            hours=self._hours,
            positions=self._positions,
        )

    def _add_hours(self, hours: dict[int, int]) -> None:
        for hour, count in hours.items():
            self._hours[hour] = self._hours.get(hour, 0) + count
        self._hours = recent(self._hours)


def _described(record: IssueRecord, newest: Increment) -> IssueRecord:
    """The issue as its newest event describes it."""
    return replace(
        record,
        error_type=newest.error_type,
        message=newest.message,
        culprit=newest.culprit,
        last_release=newest.last_release,
        grouping_version=newest.version,
        grouping_rule=newest.rule,
        grouping_parts=newest.parts,
    )


def _add(counts: dict[str, int], more: dict[str, int]) -> None:
    for name, count in more.items():
        counts[name] = counts.get(name, 0) + count


def _bound(counts: dict[str, int], keep: tuple[str, ...]) -> None:
    """Drop the names that came first, but for those to keep."""
    surplus = len(counts) - MAX_NAMES
    if surplus > 0:
        for name in [name for name in counts if name not in keep][:surplus]:
            del counts[name]
