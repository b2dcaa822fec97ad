"""Which issue each part belongs to, where some merges and unmerges have not ended. No I/O.

A part belongs to an issue where the stored rows of both say so. Where they differ, or a request is unread, a
merge or an unmerge has not ended. The part then is a separate issue with its counts, and the activity of both issues
records it. So is a part whose merge is in the activity and in no row: an earlier rebuild may have emptied the topic
`issues` before the writer read it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from processors.aggregator.totals import figures
from processors.aggregator.totals import whole as with_members
from schemas.ids import hex64, issue_id
from schemas.issues import REBUILD, Activity, Command, IssueRecord
from schemas.life import MAX_COMMANDS, forwarded
from schemas.merges import Member, Signal
from storage.maintain.rebuild_queries import StoredChange, StoredIssue


class Pair(NamedTuple):
    """An issue, and a part that it has, or has requested."""

    whole: str
    part: str


class Merges:
    """Merges according to stored rows, activities by their ids, and the unread signals and commands."""

    def __init__(
        self,
        rows: Iterable[StoredIssue],
        reported: Mapping[str, StoredChange],
        signals: Sequence[Signal],
        commands: Sequence[Command],
    ) -> None:
        self._reported = reported
        # Only redactions are not sent on.
        self._unread_commands = dict.fromkeys((one.issue, one.id) for one in commands if one.kind != "redact")
        self._into = dict[str, str]()
        self._shown = set[Pair]()
        for row in rows:
            if row.merged_into:
                self._into[hex64(row.issue)] = hex64(row.merged_into)
            else:
                parts = (hex64(issue_id(row.project, fingerprint)) for fingerprint in row.fingerprints[1:])
                self._shown.update(Pair(hex64(row.issue), part) for part in parts)
        self._commands = {
            Pair(change.data["into"], name[:16]): name[17:].partition("-merged-into-")[0]
            for name, change in reported.items()
            if "into" in change.data
        }
        releases = [(one.issue, reported.get(f"{one.issue}-{one.id}-unmerged")) for one in commands]
        self._reported_home = dict[str, str]()
        self._joined = {part: {into} for part, into in self._into.items()}
        for change in sorted(reported.values(), key=lambda change: (change.version, change.id)):
            part, into = change.id[:16], change.data.get("into")
            if into is not None:
                self._joined.setdefault(part, set()).add(into)
                self._reported_home[part] = into
            elif "from" in change.data:
                self._reported_home.pop(part, None)
        self._released = {
            Pair(issue, part)
            for issue, release in releases
            if release is not None
            for part in release.data.get("issues", ())
        }
        self._refused = [(signal.issue, signal.join) for signal in signals if signal.kind == "refused"]
        self._requested = set[Pair]()
        self._unread = [signal for signal in signals if signal.kind in {"join", "move", "leave"}]
        for signal in self._unread:
            pair = Pair(signal.sender, signal.issue)
            if signal.kind == "leave":
                self._released.add(pair)
            elif signal.kind == "join":
                self._released.discard(pair)
                if f"{pair.whole}-{signal.join}-merged-{pair.part}" not in reported:
                    self._requested.add(pair)
                    self._commands[pair] = signal.join

    def home(self, part: str) -> str | None:
        """The issue that a part belongs to; None for a separate issue."""
        root = self._root(part)
        if root in {part, *self._into}:  # rows may name each other
            return None
        home, into = root, self._into[part]
        if Pair(root, part) not in self._shown:
            if into == root or Pair(root, into) in self._shown:
                return None
            # The issue that it is merged into has itself a merge that has not ended.
            home = self.home(into) or into
        return None if Pair(home, part) in self._released else home

    def undone(self) -> list[Pair]:
        """Parts that become separate issues, though a row, an unread request or an activity says otherwise."""
        named = {Pair(self._root(part), part) for part in self._into} | self._shown | self._requested
        parts = {pair.part for pair in named}
        named |= {Pair(whole, part) for part, whole in self._reported_home.items() if part not in parts}
        return sorted(pair for pair in named if self.home(pair.part) is None)

    def activities(self, records: Mapping[str, IssueRecord], at: str) -> Iterator[Activity]:
        """Activities of both issues for `undone`. `records` are by id; `at` is the time of unknown commands too."""
        for whole, part in self.undone():
            if not {whole, part} <= records.keys():
                continue
            command = self._commands.get(Pair(whole, part), at)
            of_whole = {"issues": [part], "fingerprints": [records[part].fingerprints[0]]}
            # One command may have asked for the merge of two issues into each other.
            for issue, other, data in ((whole, part, of_whole), (part, f"from-{whole}", {"from": whole})):
                name = f"{issue}-{command}-unmerged-{other}"
                if name not in self._reported:
                    record = records[issue]
                    yield Activity(
                        name, issue, record.project_id, "unmerged", REBUILD, at, data, version=record.version
                    )

    def linked(self, records: Iterable[IssueRecord], join: str) -> list[IssueRecord]:
        """Records of single fingerprints with their merges, all of which have the name `join`.

        Unread signals and commands then change nothing: they are of other merges, or known.
        """
        by_id = {record.id: record for record in records}
        for part in list(by_id.values()):
            home = self.home(part.id)
            if home is not None and home in by_id:
                by_id[part.id] = replace(by_id[part.id], merged_into=home, life=replace(part.life, join=join))
                life = by_id[home].life
                members = life.members | {
                    part.id: Member(part.fingerprints[0], join, part.version, figures(part))
                }
                by_id[home] = replace(by_id[home], life=replace(life, members=members))
        for signal in self._unread:
            if (record := by_id.get(signal.issue)) is not None:
                life = replace(record.life, signals=(*record.life.signals, signal.name))
                by_id[record.id] = replace(record, life=life)
        for issue, name in self._forwarded(by_id):
            life = by_id[issue].life
            by_id[issue] = replace(by_id[issue], life=replace(life, signals=(*life.signals, name)))
        undone = {*self.undone(), *self._requested}
        known = [(pair.whole, self._commands[pair]) for pair in undone if pair in self._commands]
        for issue, command in (*known, *self._refused):
            if (record := by_id.get(issue)) is not None:
                commands = (*record.life.commands, command)[-MAX_COMMANDS:]
                by_id[record.id] = replace(record, life=replace(record.life, commands=commands))
        return [with_members(record) for record in by_id.values()]

    def _forwarded(self, records: Mapping[str, IssueRecord]) -> Iterator[tuple[str, str]]:
        """The unread commands that a part has forwarded, by the part, as it remembers them.

        The copies are unread, too, or the whole has applied them.
        """
        for part, command in self._unread_commands:
            # In doubt it is forwarded: one command may name a former part and its whole, which alone has read it.
            for whole in self._wholes(part) if part in records else ():
                is_known = whole in records and command in records[whole].life.commands
                if is_known or (whole, command) in self._unread_commands:
                    yield part, forwarded(command, whole)
                    break

    def _wholes(self, part: str) -> list[str]:
        """The issues that a part, or one of them, belongs to or has belonged to."""
        found = [part]
        for issue in found:
            found += sorted(self._joined.get(issue, set()).difference(found))
        return found[1:]

    def _root(self, issue: str) -> str:
        """The end of the chain of rows that name the next one."""
        chain = [issue]
        while (into := self._into.get(chain[-1])) is not None and into not in chain:
            chain.append(into)
        return chain[-1]
