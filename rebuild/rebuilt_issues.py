"""Converts issues stored in ClickHouse to records from which the processors resume. No I/O.

Counts are those of the stored events; if older events have expired, the last stored record still has their number. The
records include the logs up to the given positions, so that repeated records are dropped.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from contextlib import suppress
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from processors.aggregator.findings import milestone
from processors.aggregator.issue_merges import without_events
from processors.aggregator.lifecycle import fix_in
from processors.aggregator.totals import Users, recent
from rebuild.rebuilt_merges import Merges, Pair
from schemas.ids import hex64, id_text, issue_id, user_hash
from schemas.increments import decode_bundle, is_bundle
from schemas.issues import Activity, Command, IssueRecord, Status, decode_delta
from schemas.life import MAX_COMMANDS, Ignored, Life
from schemas.merges import Signal
from storage.maintain.rebuild_queries import StoredChange, StoredCounts, StoredIssue

_POSITION: Final = 24
"""Maximum length of a source position in the id of an activity. With a part's issue it is longer."""
_OF_PART: Final = re.compile(r"[0-9]+-[0-9]+-[0-9a-f]{16}")
_STATES: Final = {"resolved": "resolved", "ignored": "ignored", "reopened": "open", "regressed": "open"}


class Sources(NamedTuple):
    """Queries that only some issues need.

    `since(project, fingerprints, at_ms)` returns the events since then and their users, `releases(project, at_ms)` the
    releases known by then, `described(project, last_event)` an event's culprit and grouping parts.
    """

    since: Callable[[int, list[int], int], tuple[int, list[int]]]
    releases: Callable[[int, int], list[str]]
    described: Callable[[int, bytes], tuple[str, tuple[str, ...]]]


class Unread:
    """Records of `issue-deltas` that the processors may not have read.

    `owners` are those that increments name, the first for each issue.
    """

    def __init__(self) -> None:
        self.commands: list[Command] = []
        self.signals: list[Signal] = []
        self.owners: dict[int, str] = {}

    def add(self, value: bytes) -> None:
        """Take the next record of a partition. Raises DecodeError."""
        if not is_bundle(value):
            delta = decode_delta(value)
            if delta.command is not None:
                self.commands.append(delta.command)
            elif delta.signal is not None:
                self.signals.append(delta.signal)
            return
        for source in decode_bundle(value):
            for increment in source.increments:
                self.owners.setdefault(increment.issue, increment.owner)


class Covered(NamedTuple):
    """The included part of the logs: the last source offset by partition of `events`, and that of `issue-deltas`.

    `unread` are the records behind the latter.
    """

    events: Mapping[int, int]
    deltas: Mapping[int, int]
    unread: Unread


class _IssueState(NamedTuple):
    status: Status
    regressed: bool
    assignee: str | None
    resolved_in: str | None
    ignore_until: dict[str, Any] | None


class _Compared(NamedTuple):
    """Stored events compared with the last stored record.

    `older`: the record counts expired events; `newer`: an event is newer than the record, or may be.
    """

    older: bool
    newer: bool

    @staticmethod
    def of(stored: StoredCounts, row: StoredIssue | None, known: int) -> "_Compared":
        """`known` is the record's event count without merged issues."""
        if row is None or not row.events:
            # A part that was merged before its first event has the command's time.
            return _Compared(older=False, newer=True)
        if len(row.fingerprints) > 1 and not row.merged_into:
            # Its times and texts may be those of another fingerprint; only the counts can be separated.
            return _Compared(known > stored.events, newer=True)
        newest = (stored.last_ms, id_text(stored.last_event))
        return _Compared(row.first_ms < stored.first_ms, newest > (row.last_ms, id_text(row.last_event)))


class Rebuilt(NamedTuple):
    """The record of every fingerprint, including merged issues; merges that had not ended, and their activities."""

    records: list[IssueRecord]
    undone: list[Pair]
    activities: list[Activity]


def rebuilt(
    counts: Iterable[StoredCounts],
    rows: Iterable[StoredIssue],
    changes: Mapping[int, list[StoredChange]],
    covered: Covered,
    sources: Sources,
    at: str,
    erased: Mapping[tuple[int, int], int] = {},
) -> Rebuilt:
    """The issues of these counts, rows and changes; `at` is the time of the rebuild. An issue may have several rows.

    `erased` are the erased events by project and fingerprint, which may be all that an issue had.
    """
    stored_rows: dict[int, StoredIssue] = {}
    for row in rows:
        known = stored_rows.get(row.issue)
        if known is None or known.version < row.version:
            stored_rows[row.issue] = row
    stored: dict[int, StoredCounts] = {}
    for count in counts:
        stored[issue_id(count.project, count.fingerprint)] = count
    unread = covered.unread
    reported = {change.id: change for of_issue in changes.values() for change in of_issue}
    merges = Merges(stored_rows.values(), reported, unread.signals, unread.commands)
    records = [
        _record(
            issue,
            stored.get(issue),
            _own_text(stored_rows.get(issue), stored_rows, stored),
            _own_events(stored_rows.get(issue), stored_rows, stored, erased),
            changes.get(issue, []),
            covered,
            sources,
        )
        for issue in {**stored, **stored_rows}
    ]
    new = merges.linked([*records, *_named(unread.signals, {record.id for record in records})], join=at)
    return Rebuilt(new, merges.undone(), list(merges.activities({record.id: record for record in new}, at)))


def _record(
    issue: int,
    stored: StoredCounts | None,
    row: StoredIssue | None,
    known: int,
    changes: list[StoredChange],
    covered: Covered,
    sources: Sources,
) -> IssueRecord:
    """The record of one fingerprint, without members. `known` are its own events in the row."""
    record = _shown_alone(row, known) if row is not None else None
    newer = max(0, stored.events - known) if stored is not None else 0
    if stored is not None:
        record = _counted(issue, stored, record, _Compared.of(stored, row, known), sources)
    assert record is not None
    # Activities are published before the record that has their changes.
    since = [change for change in changes if row is None or change.version > row.version]
    state = _state(since, row, covered.unread.owners.get(issue, ""))
    record = replace(record, **state._asdict())
    deltas = covered.deltas.get(issue % len(covered.deltas), -1) if covered.deltas else -1
    return replace(
        record,
        version=1 + max(newer + (row.version if row else 0), *(change.version for change in changes), 0),
        positions={p: offset for p, offset in covered.events.items() if offset >= 0},
        life=replace(_life(record, changes, sources, stored), applied=deltas),
    )


def _named(signals: Iterable[Signal], known: Set[str]) -> Iterator[IssueRecord]:
    """The issues of fingerprints that an unread request names before their first event.

    When it is read, it would open them as parts.
    """
    for signal in signals:
        if signal.kind == "join" and signal.issue not in known:
            with suppress(ValueError):
                if (record := without_events(signal)) is not None:
                    yield replace(record, version=1)


def _members(row: StoredIssue) -> list[int]:
    return [issue_id(row.project, fingerprint) for fingerprint in row.fingerprints[1:]]


def _own_text(
    row: StoredIssue | None, rows: Mapping[int, StoredIssue], stored: Mapping[int, StoredCounts]
) -> StoredIssue | None:
    """A row without what may be text of a merged issue's event: its erasure would not find it here."""
    if row is None or not any(
        member in stored or (member in rows and rows[member].last_event == row.last_event)
        for member in _members(row)
    ):
        return row
    return replace(row, message="", last_event=bytes(16))


def _own_events(
    row: StoredIssue | None,
    rows: Mapping[int, StoredIssue],
    stored: Mapping[int, StoredCounts],
    erased: Mapping[tuple[int, int], int],
) -> int:
    """The events of a row without those of merged issues, which may have counted more than their own rows show.

    The row may have fewer of these than are stored; then the erased ones tell how many are its own, at least.
    """
    if row is None:
        return 0
    counts = [
        max(found[member].events if member in found else 0 for found in (rows, stored))
        for member in _members(row)
    ]
    return max(row.events - sum(counts), erased.get((row.project, row.fingerprints[0]), 0))


def _shown_alone(row: StoredIssue, events: int) -> IssueRecord:
    """A record from a stored row alone, for an issue whose events have expired."""
    return IssueRecord(
        id=hex64(row.issue),
        project_id=str(row.project),
        fingerprints=(hex64(row.fingerprints[0]),),
        error_type=row.error_type,
        message=row.message,
        culprit=row.culprit,
        first_seen_ms=row.first_ms,
        last_seen_ms=row.last_ms,
        events=events,
        users=row.users,
        users_sketch=_sketch(row.issue, [], row.users),
        releases=dict.fromkeys(row.releases, 0),
        environments=dict.fromkeys(row.environments, 0),
        first_release=row.first_release,
        last_release=row.last_release,
        last_event=id_text(row.last_event) if any(row.last_event) else "",
        received_ms=row.last_ms,
        escalated_ms=row.escalated_ms,
        grouping_version=row.grouping_version,
        grouping_rule=row.grouping_rule,
        grouping_parts=tuple(row.grouping_parts),
    )


def _counted(
    issue: int, stored: StoredCounts, known: IssueRecord | None, compared: _Compared, sources: Sources
) -> IssueRecord:
    """A record with the figures of the stored events, plus those of expired events from `known`."""
    record, older = known or _new(issue, stored), compared.older
    sketch = _sketch(issue, stored.users, record.users if older else 0)
    if compared.newer:
        record = _described(record, stored, sources)
    return replace(
        record,
        # Without expired events, the stored ones are complete.
        events=max(stored.events, record.events) if older else stored.events,
        last_seen_ms=stored.last_ms,
        last_event=id_text(stored.last_event),
        last_release=stored.last_release,
        first_seen_ms=record.first_seen_ms if older else stored.first_ms,
        first_release=record.first_release if older else stored.first_release,
        users=Users(sketch).count,
        users_sketch=sketch,
        platforms=stored.platforms,
        releases=(record.releases if older else {}) | stored.releases,
        environments=(record.environments if older else {}) | stored.environments,
        hours=recent(stored.hours),
        received_ms=stored.received_ms,
    )


def _new(issue: int, stored: StoredCounts) -> IssueRecord:
    return IssueRecord(
        id=hex64(issue),
        project_id=str(stored.project),
        fingerprints=(hex64(stored.fingerprint),),
        error_type="",
        message="",
        culprit="",
        first_seen_ms=stored.first_ms,
        last_seen_ms=stored.last_ms,
    )


def _described(record: IssueRecord, stored: StoredCounts, sources: Sources) -> IssueRecord:
    culprit, parts = sources.described(stored.project, stored.last_event)
    return replace(
        record,
        error_type=stored.error_type,
        message=stored.message,
        culprit=culprit,
        grouping_version=stored.version,
        grouping_rule=stored.rule,
        grouping_parts=parts,
    )


def _sketch(issue: int, users: list[int], minimum: int) -> str:
    """A sketch of these users, filled with placeholder users up to `minimum`.

    Users with expired events can't be recognised later, but the count must not decrease.
    """
    sketch = Users()
    sketch.add(users)
    for number in range(max(0, minimum - sketch.count)):
        sketch.add([user_hash(issue, f"expired {number}")])
    return sketch.text()


def _of_row(row: StoredIssue) -> _IssueState:
    until = msgspec.json.decode(row.ignore_until, type=dict[str, Any]) if row.ignore_until else None
    status: Any = row.status
    return _IssueState(status, row.regressed, row.assignee or None, row.resolved_in or None, until)


def _state(changes: list[StoredChange], row: StoredIssue | None, owner: str) -> _IssueState:
    """The state after the changes, for a record that is older than they are; a new issue's begins with its owner."""
    state = _IssueState("open", False, owner or None, None, None) if row is None else _of_row(row)
    for change in changes:
        if change.kind == "assigned":
            state = state._replace(assignee=change.data.get("assignee"))
        elif change.kind in _STATES:
            state = _IssueState(
                _STATES[change.kind],  # type: ignore[arg-type]
                change.kind == "regressed",
                state.assignee,
                change.data.get("resolvedIn") if change.kind == "resolved" else None,
                change.data.get("ignoreUntil") if change.kind == "ignored" else None,
            )
    return state


def _life(
    record: IssueRecord, changes: list[StoredChange], sources: Sources, stored: StoredCounts | None
) -> Life:
    """The baseline of a fix or a snooze, and the ids of known commands."""
    life = Life(
        commands=tuple(_commands(record.id, changes))[-MAX_COMMANDS:], reached=milestone(record.users)
    )
    causes = [change for change in changes if change.kind == record.status]
    if not causes:
        return life
    at_ms = causes[-1].at_ms
    if record.status == "resolved" and record.resolved_in:
        fix = fix_in(record.resolved_in, sources.releases(int(record.project_id), at_ms))
        return replace(life, fix=fix)
    if record.status == "ignored":
        fingerprints = [int(name, 16) for name in record.fingerprints]
        events, users = (
            sources.since(int(record.project_id), fingerprints, at_ms)
            if record.ignore_until and stored is not None
            else (0, [])
        )
        sketch = Users()
        sketch.add(users)
        return replace(life, ignored=Ignored(events, sketch.text()))
    return life


def _cause(issue: str, change: StoredChange) -> str:
    """A command's id, from that of its activity, `issue-command-kind`; or a source position."""
    return change.id.removeprefix(f"{issue}-").rpartition(f"-{change.kind}")[0]


def _is_command(cause: str) -> bool:
    return len(cause) > _POSITION and _OF_PART.fullmatch(cause) is None


def _commands(issue: str, changes: list[StoredChange]) -> list[str]:
    names = [_cause(issue, change) for change in changes]
    return list(dict.fromkeys(name for name in names if _is_command(name)))
