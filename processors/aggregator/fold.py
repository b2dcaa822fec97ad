"""Folding increments into an issue: each counted once however often it comes, whatever else has come in between."""

from typing import Any, Final

from msgspec.json import Decoder
from msgspec.structs import replace

from processors.aggregator.totals import HOURS, figures, own, recent, whole
from processors.aggregator.users import Users
from processors.grouper.fingerprinter import id_text
from schemas.changes import RedactData
from schemas.ids import hex64
from schemas.increments import Increment, decode_description
from schemas.issues import Activity, IssueRecord, decode_issue, encode_json
from schemas.merges import Figures
from schemas.times import iso

MAX_NAMES: Final = 100
"""Releases, and environments, that an issue's aggregate names; the first and the last release always stay."""
SYSTEM: Final = "system"


class Growing(IssueRecord, frozen=False, kw_only=True, rename="camel"):  # type: ignore[misc]  # msgspec allows it
    """A record that is being folded into, in place; encoded like any other."""


_decode = Decoder(Growing).decode


def created(increment: Increment) -> Activity:
    """The activity of an issue's first increment; its id is the same however often it is written."""
    issue = hex64(increment.issue)
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

    __slots__ = ("_latest", "_record", "_sketched", "_taken", "_users", "id")

    def __init__(self, record: IssueRecord) -> None:
        # Any: a checker takes what derives from a frozen struct for frozen.
        self._record: Any = record
        self.id = record.id
        self._users: Users | None = None
        self._sketched = True
        self._taken = record.version
        self._latest: Increment | None = None

    @staticmethod
    def read(published: bytes) -> "Fold":
        """The fold that goes on from a published record."""
        record = _decode(published)
        return Fold(record if record.life.home is None else own(record))

    @staticmethod
    def opened(increment: Increment) -> "Fold":
        """The fold of an issue before its first increment is in."""
        description = decode_description(increment.description)
        return Fold(
            Growing(
                id=hex64(increment.issue),
                project_id=str(increment.project),
                fingerprints=(hex64(increment.fingerprint),),
                error_type=description.error_type,
                message=description.message,
                culprit=description.culprit,
                first_seen_ms=increment.first_ms,
                last_seen_ms=increment.last_ms,
                first_release=increment.first_release,
            )
        )

    @property
    def version(self) -> int:
        """How many increments, commands and signals are in."""
        version: int = self._record.version
        return version

    @property
    def state(self) -> IssueRecord:
        """Status, merges and all else that is no count; for counts see `record`."""
        record: IssueRecord = self._record
        return record

    @property
    def quiet(self) -> bool:
        """Whether an increment has no effect beyond being counted: the issue is open and not merged."""
        record: IssueRecord = self._record
        return record.status == "open" and record.merged_into is None

    def keep(self, state: IssueRecord) -> None:
        """Take over a state that came of an increment which is in."""
        record = self._record
        record.status = state.status
        record.regressed = state.regressed
        record.assignee = state.assignee
        record.resolved_in = state.resolved_in
        record.ignore_until = state.ignore_until
        record.merged_into = state.merged_into
        record.life = replace(state.life, home=None)

    def settle(self, state: IssueRecord) -> None:
        """Take over a state that came of a command or signal."""
        self.keep(state)
        self._record.version += 1

    def redact(self, data: RedactData) -> None:
        """Take the words of an erased event out of the description, or with `wholly` all words out of the record."""
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

    def grown(self) -> int:
        """By how much the version has grown since this was asked last, or since the record was read."""
        grown, self._taken = self.version - self._taken, self.version
        return grown

    def figures(self) -> Figures:
        """What its own fingerprint has counted, a value of its own."""
        return figures(own(self.record()))

    def add(self, partition: int, offset: int, increment: Increment) -> bool:
        """Fold in what the source record at `partition`, `offset` adds; False where it is in already.

        Increments of one source partition arrive in order and are sent again from a point already covered, so one that is
        not beyond the last offset is a repeat.
        """
        record = self._record
        if record.positions.get(partition, -1) >= offset:
            return False
        record.positions[partition] = offset
        record.version += 1
        record.events += increment.events
        record.received_ms = max(record.received_ms, increment.received_ms)
        first = increment.first_ms
        if first < record.first_seen_ms or (
            first == record.first_seen_ms and increment.first_release < record.first_release
        ):
            record.first_seen_ms, record.first_release = first, increment.first_release
        last = increment.last_ms
        if (
            record.version == 1
            or last > record.last_seen_ms
            or (last == record.last_seen_ms and self._beaten(increment))
        ):
            record.last_seen_ms = last
            self._latest = increment
        if increment.users:
            self._add_users(increment.users)
        self._add_rows(increment)
        return True

    def record(self) -> IssueRecord:
        """The state now, a value of its own."""
        return decode_issue(self.encoded())

    def encoded(self) -> bytes:
        """The state now, as it is published."""
        record = self._record
        if self._latest is not None:
            self._describe(self._latest)
            self._latest = None
        if not self._sketched and self._users is not None:
            record.users, record.users_sketch = self._users.count, self._users.text()
            self._sketched = True
        if len(record.releases) > MAX_NAMES:
            _bound(record.releases, (record.first_release, record.last_release))
        if len(record.environments) > MAX_NAMES:
            _bound(record.environments, ())
        return encode_json(whole(record) if record.life.members else record)

    def _beaten(self, increment: Increment) -> bool:
        """Whether the newest event so far has a smaller id; asked where both happened at the same time."""
        newest = self._record.last_event if self._latest is None else id_text(self._latest.last_event)
        return id_text(increment.last_event) > newest

    def _add_users(self, users: list[int]) -> None:
        if self._users is None:
            self._users = Users(self._record.users_sketch)
        self._users.add(users)
        self._sketched = False

    def _add_rows(self, increment: Increment) -> None:
        record = self._record
        releases, environments = record.releases, record.environments
        platforms, hours = record.platforms, record.hours
        for row in increment.rows:
            events = row.events
            releases[row.release] = releases.get(row.release, 0) + events
            environments[row.environment] = environments.get(row.environment, 0) + events
            platforms[row.platform] = platforms.get(row.platform, 0) + events
            hours[row.hour] = hours.get(row.hour, 0) + events
        if len(hours) > HOURS:
            record.hours = recent(hours)

    def _describe(self, newest: Increment) -> None:
        """The issue as its newest event describes it."""
        record, description = self._record, decode_description(newest.description)
        record.last_event = id_text(newest.last_event)
        record.last_release = newest.last_release
        record.error_type = description.error_type
        record.message = description.message
        record.culprit = description.culprit
        record.grouping_version = description.version
        record.grouping_rule = description.rule
        record.grouping_parts = description.parts


def _bound(counts: dict[str, int], keep: tuple[str, ...]) -> None:
    """Drop the names that came first, but for those to keep."""
    surplus = len(counts) - MAX_NAMES
    for name in [name for name in counts if name not in keep][:surplus]:
        del counts[name]
