"""Merged issues of rebuilt records, also where a merge or unmerge is under way. No I/O.

The last stored rows show members. Of what is under way they know one side, and the other one is in what the processors have not read of
`issue-deltas`. It is told first, then sent, then recorded: so whoever has told that it left, or has an unread `leave`, is no member.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from processors.aggregator.totals import figures
from schemas.ids import hex64, issue_id, parse_hex64
from schemas.issues import Command, DeltaRecord, IssueRecord
from schemas.life import MAX_COMMANDS, Life
from schemas.merges import Member, Pending, Signal, SignalKind
from storage.maintain.rebuild_queries import StoredChange

_ID: Final = 16
"""Characters of an issue's id."""


class Merges:
    """Links rebuilt records to each other. `records` are by their ids, `unread` is in the order of the log."""

    def __init__(
        self,
        records: Iterable[IssueRecord],
        changes: Mapping[int, list[StoredChange]],
        unread: Sequence[DeltaRecord],
    ) -> None:
        self.records = {record.id: record for record in records}
        activities = {change.id: change.data for of_issue in changes.values() for change in of_issue}
        self._activities = activities
        self._signals = [delta.signal for delta in unread if delta.signal is not None]
        self._again = _again(unread)
        self._leaving = {(signal.issue, signal.join) for signal in self._of("leave")}
        self._shown: dict[str, set[str]] = defaultdict(set)
        self._joining: dict[str, set[str]] = defaultdict(set)
        self._requests: dict[tuple[str, str], set[str]] = defaultdict(set)
        for signal in self._of("joined"):
            self._joining[signal.issue] |= {signal.sender, *signal.members}
        for signal, whole, part in self._requested():
            self._requests[whole, signal.join].add(part)
        self._released_by = {
            (name[:_ID], part): name[_ID + 1 :].removesuffix("-unmerged")
            for name, data in activities.items()
            if name.endswith("-unmerged")
            for part in data.get("issues", ())
        }
        """The last command by which an issue released a part."""
        self._releases: dict[str, dict[str, set[str]]] = defaultdict(dict)
        for issue, command in self._again:
            released = activities.get(f"{issue}-{command}-unmerged", {}).get("issues", ())
            self._releases[issue][command] = set(released)

    def link(self, whole: str, fingerprints: Iterable[int], changes: list[StoredChange]) -> None:
        """Link the members that an issue shows."""
        if not self._is_alone(whole):
            return
        project = int(self.records[whole].project_id)
        parts = {hex64(issue_id(project, fingerprint)): fingerprint for fingerprint in fingerprints}
        self._shown[whole].update(parts)
        for part, fingerprint in parts.items():
            joins = _joins(whole, hex64(fingerprint), changes) or [""]
            # Changes are in the order of clocks, which may be wrong.
            join = next((join for join in reversed(joins) if not self._leaves(part, join)), joins[-1])
            if part not in self.records or not self._is_held(whole, part, join):
                continue
            if not self._leaves(part, join):
                self._merge(part, whole, join)
            alone, life = self.records[part], self.records[whole].life
            member = Member(hex64(fingerprint), join, alone.version, figures(alone))
            # Without the name, an answer that is read again from the log would be treated as unexpected.
            signals = (*life.signals, f"joined-{part}-{join}")
            self._live(whole, replace(life, members=life.members | {part: member}, signals=signals))

    def take_up(self) -> None:
        """Restore what unread signals and their answers need, once all members are linked."""
        for signal in self._of("joined"):
            whole, part, join = signal.issue, signal.sender, signal.join
            if part not in self.records or not self._is_alone(whole) or not self._is_held(whole, part, join):
                continue
            if not self._leaves(part, join):
                if not self._is_alone(part):
                    continue
                self._merge(part, whole, join)
            self._wait(signal, whole, part)
            for issue, member in signal.members.items():
                self._remember(part, f"joined-{issue}-{member.join}")
                # It is still to be told to move.
                if self._is_alone(issue) and not self._leaves(issue, join):
                    self._merge(issue, part, member.join)
        self._take_up_leaving()
        for signal in self._of("refused"):
            if signal.sender in self.records:
                self._remember(signal.sender, f"join-{signal.issue}-{signal.join}")
        # An older request was refused before the next one was sent.
        for signal, whole, part in sorted(self._requested(), key=lambda request: request[0].kind == "join"):
            if self._is_alone(whole) and not self._is_settled(signal, whole, part):
                self._wait(signal, whole, part)

    def _take_up_leaving(self) -> None:
        for signal in self._of("leave"):
            if (
                self._is_alone(signal.issue)
                and signal.sender in self.records
                and not self._has_left(signal.issue, signal.join)
            ):
                # It tells that it left when it reads this.
                self._merge(signal.issue, signal.sender, signal.join)
        # Until its release is answered, an issue requests nothing, and joins no other.
        for signal in self._of("leave"):
            self._await_left(signal, signal.sender, signal.issue)
        for signal in self._of("left"):
            self._await_left(signal, signal.issue, signal.sender)

    def _of(self, kind: SignalKind) -> list[Signal]:
        return [signal for signal in self._signals if signal.kind == kind]

    def _requested(self) -> Iterator[tuple[Signal, str, str]]:
        """The signals of requests to join, with the issue that requests and the one that it requests from."""
        for signal in self._signals:
            if signal.kind == "join":
                yield signal, signal.sender, signal.issue
            elif signal.kind in {"joined", "refused"}:
                yield signal, signal.issue, signal.sender

    def _is_alone(self, issue: str) -> bool:
        return issue in self.records and self.records[issue].merged_into is None

    def _is_settled(self, signal: Signal, whole: str, part: str) -> bool:
        """Whether a request has nothing to wait for: the part is merged, or won't be by what it still reads."""
        record = self.records.get(part)
        if record is not None and (record.merged_into, record.life.join) == (whole, signal.join):
            return True
        if signal.kind == "join":
            # It answers when it reads this, also if it had answered before it was recorded.
            return self._leaves(part, signal.join)
        return signal.kind == "joined" or f"{whole}-{signal.join}-merged-{part}" in self._activities

    def _has_left(self, part: str, join: str) -> bool:
        return f"{part}-{join}-unmerged" in self._activities

    def _leaves(self, part: str, join: str) -> bool:
        return (part, join) in self._leaving or self._has_left(part, join)

    def _is_held(self, whole: str, part: str, join: str) -> bool:
        """Whether an issue has a member, or will have it; it forgets what it is still to read again of its release."""
        again = {
            command
            for command, released in self._releases[whole].items()
            # A record from after the release shows none of them, and had had all answers.
            if part in released and (self._shown[whole] & released or self._joining[whole] >= released)
        }
        life = self.records[whole].life
        self._live(
            whole, replace(life, commands=tuple(known for known in life.commands if known not in again))
        )
        return bool(again) or not self._leaves(part, join)

    def _live(self, issue: str, life: Life) -> None:
        self.records[issue] = replace(self.records[issue], life=life)

    def _merge(self, part: str, whole: str, join: str) -> None:
        """Let an issue know into which it is merged."""
        alone = self.records[part]
        # Its own members come along, even if its last row is older and shows them, or requests them.
        life = replace(alone.life, join=join, members={}, pending={})
        self.records[part] = replace(alone, merged_into=whole, life=life)
        self._remember(part, f"join-{whole}-{join}")

    def _remember(self, issue: str, signal: str) -> None:
        """Note that a signal is answered, in case that it is read again from the log."""
        life = self.records[issue].life
        self._live(issue, replace(life, signals=(*life.signals, signal)))

    def _wait(self, signal: Signal, whole: str, part: str) -> None:
        """Let an issue wait for the answer to its request, or request again if it has not read all of the command."""
        record = self.records[whole]
        if part in record.life.members:
            return
        pending, commands = record.life.pending, [c for c in record.life.commands if c != signal.join]
        if not self._is_requested_again(record, signal.join):
            pending = pending | {part: Pending("join", signal.join, signal.by, signal.at)}
            commands = [*commands, signal.join][-MAX_COMMANDS:]
        self._live(whole, replace(record.life, pending=pending, commands=tuple(commands)))

    def _await_left(self, signal: Signal, whole: str, part: str) -> None:
        """Let an issue wait for the answer of a part that it has released."""
        command = self._released_by.get((whole, part))
        if command is None or not self._is_alone(whole):
            return
        life = self.records[whole].life
        # It releases the part when it reads the command again.
        if command not in life.commands or part in life.members or part in life.pending:
            return
        pending = life.pending | {part: Pending("leave", command, signal.by, signal.at)}
        self._live(whole, replace(life, pending=pending))

    def _is_requested_again(self, record: IssueRecord, join: str) -> bool:
        """Whether a merge is still to be read and some of its requests were not sent."""
        command = self._again.get((record.id, join))
        if command is None:
            return False
        project, named = int(record.project_id), map(parse_hex64, command.data.get("fingerprints", ()))
        parts = {
            *command.data.get("issues", ()),
            *(hex64(issue_id(project, one)) for one in named if one is not None),
        }
        # One that has joined by it may have left since.
        wanted = {part for part in parts if f"{record.id}-{join}-merged-{part}" not in self._activities}
        return not wanted - {record.id, *record.life.members} <= self._requests[record.id, join]


def news(records: Iterable[IssueRecord]) -> Iterator[Signal]:
    """The rebuilt figures of issues whose answer, which has older ones, is still to be read."""
    by_id = {record.id: record for record in records}
    for part in by_id.values():
        if part.merged_into is not None and part.id not in by_id[part.merged_into].life.members:
            yield Signal(
                "news",
                part.merged_into,
                part.id,
                part.project_id,
                part.life.join,
                version=part.version,
                figures=figures(part),
            )


def _again(unread: Sequence[DeltaRecord]) -> dict[tuple[str, str], Command]:
    """The commands that are still to be read, by issue and id: one that comes after an answer to its request is a repeat."""
    again, answered = dict[tuple[str, str], Command](), set[tuple[str, str]]()
    for delta in unread:
        if delta.command is not None and (delta.command.issue, delta.command.id) not in answered:
            again[delta.command.issue, delta.command.id] = delta.command
        elif delta.signal is not None:
            answered.add((delta.signal.issue, delta.signal.join))
    return again


def _joins(issue: str, fingerprint: str, changes: list[StoredChange]) -> list[str]:
    """The commands that merged a fingerprint; ids of merge activities are `issue-command-merged-part`."""
    return [
        change.id.removeprefix(f"{issue}-").rpartition("-merged")[0]
        for change in changes
        if change.kind == "merged" and fingerprint in change.data.get("fingerprints", ())
    ]
