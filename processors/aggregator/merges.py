"""Merging and unmerging as a pure exchange of signals between the records of two issues.

An issue is a set of fingerprints. What each has counted stays in its own record for ever; a record that is merged only tells
the sums to the one that it is a part of. A merge is asked of each issue (`join`) and answered by it (`joined`, `refused`), an
unmerge the same way (`leave`, `left`). Issues stay flat: what was merged into an issue that joins another moves with it. An
issue that waits for an answer refuses to join any other, so that no two can swallow each other.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from processors.aggregator.lifecycle import by_command, judge
from processors.aggregator.totals import figures, own
from schemas.changes import MergeData, UnmergeData
from schemas.issues import Activity, ActivityKind, Command, IssueRecord
from schemas.merges import Member, Pending, Signal, SignalKind

MAX_MEMBERS: Final = 100
"""Issues merged into one: bounds its record to about a megabyte."""


class RefusedChange(Exception):
    """The change can't be made; the text says why."""


class Exchanged(NamedTuple):
    """A record after a change, what is to be told about it, and what to other records."""

    record: IssueRecord
    activities: tuple[Activity, ...] = ()
    signals: tuple[Signal, ...] = ()


def merge(record: IssueRecord, command: Command, data: MergeData) -> Exchanged:
    """Ask issues to join; nobody is asked while an earlier merge or unmerge is not answered. Raises RefusedChange."""
    life = record.life
    wanted = [i for i in dict.fromkeys(data.issues) if i not in {record.id, *life.members}]
    room = MAX_MEMBERS - len(life.members)
    if len(wanted) > room:
        raise RefusedChange(f"at most {MAX_MEMBERS} issues can be merged into one")
    if life.pending:
        return Exchanged(record)
    asked = {issue: Pending("join", command.id, command.by, command.at) for issue in wanted}
    signals = [replace(_asked(record, "join", issue, command.id, command), room=room) for issue in wanted]
    return Exchanged(replace(record, life=replace(life, pending=asked)), signals=tuple(signals))


def unmerge(record: IssueRecord, command: Command, data: UnmergeData) -> Exchanged:
    """Give up members; their counts leave with them. Raises RefusedChange where none of the fingerprints is merged."""
    life = record.life
    gone = {issue: m for issue, m in life.members.items() if m.fingerprint in data.fingerprints}
    if not gone:
        raise RefusedChange("none of these fingerprints is merged into the issue")
    asked = {issue: Pending("leave", command.id, command.by, command.at) for issue in gone}
    members = {issue: member for issue, member in life.members.items() if issue not in gone}
    told = {"issues": list(gone), "fingerprints": [member.fingerprint for member in gone.values()]}
    return Exchanged(
        replace(record, life=replace(life, pending=life.pending | asked, members=members)),
        (by_command(record, command, "unmerged", told),),
        tuple(_asked(record, "leave", issue, member.join, command) for issue, member in gone.items()),
    )


def receive(record: IssueRecord, signal: Signal) -> Exchanged:
    """What a signal makes of the record that it is for; one that is out of date changes nothing."""
    return _RECEIVERS[signal.kind](record, signal)


def refusal(signal: Signal, reason: str) -> Signal:
    """The answer to a `join` that can't be."""
    return Signal(
        "refused", signal.sender, signal.issue, signal.project_id, signal.join, signal.by, signal.at, reason=reason
    )  # fmt: skip


def _join(record: IssueRecord, signal: Signal) -> Exchanged:
    life = record.life
    if record.merged_into == signal.sender and life.join == signal.join:
        return Exchanged(record)
    if record.merged_into is not None:
        return Exchanged(record, signals=(refusal(signal, f"merged into {record.merged_into}"),))
    if life.pending:
        return Exchanged(record, signals=(refusal(signal, "another merge of it is under way"),))
    if 1 + len(life.members) > signal.room:
        return Exchanged(record, signals=(refusal(signal, "too many fingerprints for one issue"),))
    alone = own(record)
    answer = _answer(alone, signal, "joined")
    answer = replace(answer, fingerprint=alone.fingerprints[0], members=life.members)
    joined = replace(alone, merged_into=signal.sender, life=replace(alone.life, join=signal.join, members={}))
    return Exchanged(joined, (_told(record, signal, "merged", {"into": signal.sender}),), (answer,))


def _joined(record: IssueRecord, signal: Signal) -> Exchanged:
    life, asked = record.life, record.life.pending.get(signal.sender)
    if asked is None or asked.kind != "join" or asked.command != signal.join or signal.figures is None:
        # Nobody waits for it any more: it must not believe itself a part.
        back = Signal("leave", signal.sender, record.id, record.project_id, signal.join, signal.by, signal.at)
        return Exchanged(record, signals=(back,))
    came = {signal.sender: Member(signal.fingerprint, signal.join, signal.version, signal.figures)}
    came |= {issue: replace(member, join=signal.join) for issue, member in signal.members.items()}
    moves = tuple(
        Signal("move", issue, record.id, record.project_id, signal.join, asked.by, asked.at)
        for issue in signal.members
    )
    told = {"issue": signal.sender, "fingerprints": [member.fingerprint for member in came.values()]}
    return Exchanged(
        replace(record, life=replace(life, members=life.members | came, pending=_without(life.pending, signal))),
        (_told(record, replace(signal, by=asked.by, at=asked.at), "merged", told, f"-{signal.sender}"),),
        moves,
    )  # fmt: skip


def _settled(record: IssueRecord, signal: Signal) -> Exchanged:
    """`refused` and `left`: nothing is waited for any more."""
    kind = "join" if signal.kind == "refused" else "leave"
    asked = record.life.pending.get(signal.sender)
    if asked is None or asked.kind != kind:
        return Exchanged(record)
    return Exchanged(
        replace(record, life=replace(record.life, pending=_without(record.life.pending, signal)))
    )


def _move(record: IssueRecord, signal: Signal) -> Exchanged:
    if record.merged_into is None:
        return Exchanged(record, signals=(_answer(own(record), signal, "left"),))
    moved = replace(record, merged_into=signal.sender, life=replace(record.life, join=signal.join))
    return Exchanged(moved, signals=(_answer(own(record), signal, "news"),))


def _news(record: IssueRecord, signal: Signal) -> Exchanged:
    member = record.life.members.get(signal.sender)
    if member is None or member.join != signal.join or signal.figures is None:
        return Exchanged(record)
    known = member.version
    if signal.version <= known:
        return Exchanged(record)
    member = replace(member, version=signal.version, figures=signal.figures)
    record = replace(record, life=replace(record.life, members=record.life.members | {signal.sender: member}))
    activities: list[Activity] = []
    for one in signal.news:
        # Sent again after a crash, news may come in other portions: each is judged by its own version.
        if one.version > known:
            record, told = judge(record, one, origin=signal.sender)
            activities += told
    return Exchanged(record, tuple(activities))


def _leave(record: IssueRecord, signal: Signal) -> Exchanged:
    answer = _answer(own(record), signal, "left")
    if record.merged_into != signal.sender or record.life.join != signal.join:
        return Exchanged(record, signals=(answer,))
    alone = replace(record, merged_into=None, life=replace(record.life, join=""))
    return Exchanged(alone, (_told(record, signal, "unmerged", {"from": signal.sender}),), (answer,))


_RECEIVERS: Final[dict[SignalKind, Callable[[IssueRecord, Signal], Exchanged]]] = {
    "join": _join,
    "joined": _joined,
    "refused": _settled,
    "move": _move,
    "news": _news,
    "leave": _leave,
    "left": _settled,
}


def _asked(record: IssueRecord, kind: SignalKind, issue: str, join: str, command: Command) -> Signal:
    return Signal(kind, issue, record.id, record.project_id, join, command.by, command.at)


def _answer(alone: IssueRecord, signal: Signal, kind: SignalKind) -> Signal:
    return Signal(
        kind,
        signal.sender,
        alone.id,
        alone.project_id,
        signal.join,
        signal.by,
        signal.at,
        version=alone.version,
        figures=figures(alone) if kind != "left" else None,
    )


def _told(
    record: IssueRecord, signal: Signal, kind: ActivityKind, data: dict[str, Any], suffix: str = ""
) -> Activity:
    return Activity(
        id=f"{record.id}-{signal.join}-{kind}{suffix}",
        issue=record.id,
        project_id=record.project_id,
        kind=kind,
        by=signal.by,
        at=signal.at,
        data=data,
    )


def _without(pending: dict[str, Pending], signal: Signal) -> dict[str, Pending]:
    return {issue: asked for issue, asked in pending.items() if issue != signal.sender}
