"""Folding increments into an issue: each counts once, however often it is delivered. Pure."""

from collections.abc import Sequence
from typing import cast

from msgspec.json import Decoder
from msgspec.structs import replace

from processors.aggregator.escalation import worth_judging
from processors.aggregator.findings import MAX_NAMES, SeenFields, names_of, new_names, next_milestone
from processors.aggregator.totals import HOURS, Users, figures, own, recent, united, whole
from schemas.changes import RedactData
from schemas.ids import hex64, id_text
from schemas.increments import Increment, decode_description
from schemas.issues import IssueFields, IssueRecord, decode_issue, encode_json
from schemas.life import Life
from schemas.merges import Figures
from schemas.times import HOUR_MS


class FoldedRecord(IssueFields):
    """A record that is changed in place; encoded like any other."""


_decode = Decoder(FoldedRecord).decode


class Fold:
    """An issue and the increments folded into it.

    It counts its own fingerprint; `record` and `encoded` add the figures of merged issues. More may be folded
    in after these.
    """

    __slots__ = (
        "_counted_version",
        "_environments",
        "_latest",
        "_next_milestone",
        "_record",
        "_releases",
        "_sketched",
        "_users",
        "id",
        "stands_out",
    )

    def __init__(self, record: FoldedRecord) -> None:
        self._record = record
        self.id = record.id
        self._users: Users | None = None
        self._sketched = True
        self._counted_version = record.version
        self._latest: Increment | None = None
        # Of the increment folded in last: names that no earlier one had.
        self._releases: list[str] = []
        self._environments: list[str] = []
        self._next_milestone = next_milestone(record.life.reached)
        self.stands_out = False
        """Whether the increment folded in last may have findings; most have none."""

    @staticmethod
    def restore(published: bytes) -> "Fold":
        record = _decode(published)
        return Fold(record if record.life.home is None else own(record))

    @staticmethod
    def of(record: IssueRecord, since: int) -> "Fold":
        """The fold of a record that no table has yet, opened at this offset of `issue-deltas`."""
        return Fold(_decode(encode_json(replace(record, life=replace(record.life, since=since)))))

    @staticmethod
    def new(increment: Increment, since: int) -> "Fold":
        """The fold of an issue before its first increment is in, which is at this offset of `issue-deltas`."""
        description = decode_description(increment.description)
        return Fold(
            FoldedRecord(
                id=hex64(increment.issue),
                project_id=str(increment.project),
                fingerprints=(hex64(increment.fingerprint),),
                error_type=description.error_type,
                message=description.message,
                culprit=description.culprit,
                first_seen_ms=increment.first_ms,
                last_seen_ms=increment.last_ms,
                first_release=increment.first_release,
                life=Life(since=since),
            )
        )

    @property
    def version(self) -> int:
        """How many increments, commands and signals are in."""
        return self._record.version

    @property
    def state(self) -> IssueRecord:
        """Status, merges and everything else but counts; for these see `record`."""
        return cast(IssueRecord, self._record)

    def counted_state(self) -> IssueRecord:
        """`state` with the current counts and users of the issue's first fingerprint, without its members."""
        self._sketch()
        return self.state

    @property
    def has_events(self) -> bool:
        """Whether an increment is in: a merge may name a fingerprint before its first event."""
        return self._record.events > 0

    @property
    def is_open(self) -> bool:
        """Whether the issue is open and not merged: an increment then has no other effect than its counts."""
        return self._record.status == "open" and self._record.merged_into is None

    def shown(self) -> SeenFields:
        """The findings of the last folded increment, compared with the merged issues too."""
        record = self._record
        self._sketch()
        members = [member.figures for member in record.life.members.values()]
        return SeenFields(
            _new(self._releases, [record.releases, *(one.releases for one in members)]),
            _new(self._environments, [record.environments, *(one.environments for one in members)]),
            [record.hours, *(one.hours for one in members)],
            united([record.users_sketch, *(one.users_sketch for one in members)]).count
            if members
            else record.users,
        )

    def set_state(self, state: IssueRecord) -> None:
        """Set the state that follows from an increment folded in before."""
        record = self._record
        record.status = state.status
        record.regressed = state.regressed
        record.assignee = state.assignee
        record.resolved_in = state.resolved_in
        record.ignore_until = state.ignore_until
        record.merged_into = state.merged_into
        record.escalated_ms = state.escalated_ms
        record.life = replace(state.life, home=None)
        self._next_milestone = next_milestone(state.life.reached)

    def change_state(self, state: IssueRecord) -> None:
        """Set the state that follows from a command or signal; the version grows."""
        self.set_state(state)
        self._record.version += 1

    def redact(self, data: RedactData) -> None:
        """Remove an erased event's text from the description, or with `wholly` all text from the record."""
        self.encoded()
        record = self._record
        if data.wholly:
            record.error_type = record.message = record.culprit = record.last_event = ""
            record.first_release = record.last_release = record.users_sketch = ""
            record.releases, record.environments, record.grouping_parts = {}, {}, ()
            record.assignee = record.resolved_in = record.ignore_until = None
            record.life = replace(record.life, fix=None, ignored=None, members={})
            self._users = None
        elif record.last_event == data.event:
            record.message, record.last_event = data.message, data.newest
            # A later event may be older than the erased one, and newer than this.
            record.last_seen_ms = data.newest_ms or record.last_seen_ms

    def version_growth(self) -> int:
        """The growth of the version since the last call, or since the fold was restored."""
        growth, self._counted_version = self.version - self._counted_version, self.version
        return growth

    def figures(self) -> Figures:
        """A copy of the figures of the issue's first fingerprint, without its members."""
        return figures(own(self.record()))

    def add_increment(self, partition: int, offset: int, increment: Increment) -> bool:
        """Fold in the increment of the source record at `partition`, `offset`; False where it is a repeat.

        Increments of one source partition arrive in order, and a replay begins at an offset that is already
        folded in. So an increment at or before the last offset is a repeat.
        """
        record = self._record
        if record.positions.get(partition, -1) >= offset:
            return False
        record.positions[partition] = offset
        record.version += 1
        is_first = not record.events
        record.events += increment.events
        record.received_ms = max(record.received_ms, increment.received_ms)
        first = increment.first_ms
        if (
            is_first
            or first < record.first_seen_ms
            or (first == record.first_seen_ms and increment.first_release < record.first_release)
        ):
            record.first_seen_ms, record.first_release = first, increment.first_release
        last = increment.last_ms
        if (
            is_first
            or last > record.last_seen_ms
            or (last == record.last_seen_ms and self._has_newer_id(increment))
            or not (record.last_event or self._latest)
        ):
            record.last_seen_ms = last
            self._latest = increment
        users_reached = bool(increment.users) and self._add_users(increment.users)
        self.stands_out = self._add_rows(increment, is_first) or users_reached or bool(record.life.members)
        return True

    def record(self) -> IssueRecord:
        """A copy of the record as it is now."""
        return decode_issue(self.encoded())

    def encoded(self) -> bytes:
        """The record as it is now, encoded for the table `issues`."""
        record = self._record
        if self._latest is not None:
            self._describe(self._latest)
            self._latest = None
        self._sketch()
        return encode_json(whole(record) if record.life.members else record)

    def _has_newer_id(self, increment: Increment) -> bool:
        """Whether the increment's last event has a greater id than the newest: it decides between equal times."""
        newest = self._record.last_event if self._latest is None else id_text(self._latest.last_event)
        return id_text(increment.last_event) > newest

    def _sketch(self) -> None:
        if not self._sketched and self._users is not None:
            self._record.users, self._record.users_sketch = self._users.count, self._users.text()
            self._sketched = True

    def _add_users(self, users: list[int]) -> bool:
        """Count users; returns whether the next milestone is reached."""
        if self._users is None:
            self._users = Users(self._record.users_sketch)
        self._users.add(users)
        self._sketched = False
        return self._users.reaches(self._next_milestone)

    def _add_rows(self, increment: Increment, is_first: bool) -> bool:
        """Count rows; returns whether a name is new or an hour's count worth judging."""
        record = self._record
        judged, grown = increment.received_ms // HOUR_MS, 0
        if self._releases or self._environments:
            self._releases, self._environments = [], []
        releases, environments = record.releases, record.environments
        platforms, hours = record.platforms, record.hours
        for row in increment.rows:
            events = row.events
            if row.release not in releases:
                self._releases.append(row.release)
            if row.environment not in environments:
                self._environments.append(row.environment)
            if row.hour == judged:
                grown += events
            releases[row.release] = releases.get(row.release, 0) + events
            environments[row.environment] = environments.get(row.environment, 0) + events
            platforms[row.platform] = platforms.get(row.platform, 0) + events
            hours[row.hour] = hours.get(row.hour, 0) + events
        is_worth_judging = grown > 0 and worth_judging((now := hours[judged]) - grown, now)
        if len(hours) > HOURS:
            record.hours = recent(hours)
        if self._releases or self._environments:
            return self._add_names(is_first) or is_worth_judging
        return is_worth_judging

    def _add_names(self, is_first: bool) -> bool:
        """Bound the names that have grown; returns whether they are findings.

        Those of the first increment are in the activity `created`.
        """
        record = self._record
        if len(record.releases) > MAX_NAMES:
            last = record.last_release if self._latest is None else self._latest.last_release
            _bound(record.releases, (record.first_release, last))
        if len(record.environments) > MAX_NAMES:
            _bound(record.environments, ())
        if is_first:
            self._releases, self._environments = [], []
        return not is_first

    def _describe(self, newest: Increment) -> None:
        record, description = self._record, decode_description(newest.description)
        record.last_event = id_text(newest.last_event)
        record.last_release = newest.last_release
        record.error_type = description.error_type
        record.message = description.message
        record.culprit = description.culprit
        record.grouping_version = description.version
        record.grouping_rule = description.rule
        record.grouping_parts = description.parts


def _new(added: Sequence[str], parts: Sequence[dict[str, int]]) -> list[str]:
    """Of the names that an increment has just added to the first part, those that no part had before."""
    return new_names(added, (parts[0].keys() - added) | names_of(parts[1:])) if added else []


def _bound(counts: dict[str, int], keep: tuple[str, ...]) -> None:
    """Drop the oldest names except those to keep."""
    surplus = len(counts) - MAX_NAMES
    for name in [name for name in counts if name not in keep][:surplus]:
        del counts[name]
