"""Merging and unmerging as a pure exchange of signals between the records of two issues.

An issue is a set of fingerprints. Each fingerprint's counts stay in its own record; a merged record sends its
figures to the issue it is merged into. Merges stay flat: members of an issue that joins another move with it.
An issue with pending requests refuses to join another, so that two issues can't merge into each other.

| signal  | from → to                | the receiver                             | and answers       |
| ------- | ------------------------ | ---------------------------------------- | ----------------- |
| join    | target → issue           | becomes a member, unless it is one, or   | joined (with its  |
|         |                          | has requests pending                     | figures), refused |
| joined  | member → target          | counts its figures, has its members move | leave, if it asks |
|         |                          |                                          | no longer         |
| refused | issue → target           | ends its request                         |                   |
| move    | target → member's member | belongs to the target from now on        | news              |
| news    | member → target          | counts newer figures, judges its state   |                   |
| leave   | target → member          | is a separate issue again                | left              |
| left    | member → target          | ends its request                         |                   |

`_RECEIVERS` has the functions. Each names the merge (`join`) that it belongs to; one of an earlier merge
changes nothing.
"""

from collections.abc import Callable
from typing import Any, Final, Literal, NamedTuple

from msgspec.structs import replace

from processors.aggregator.findings import SeenFields, findings, names_of, new_names, with_subject
from processors.aggregator.lifecycle import by_command, transition
from processors.aggregator.totals import figures, own, united
from schemas.changes import MergeData, UnmergeData
from schemas.ids import hex64, issue_id
from schemas.issues import Activity, ActivityKind, Command, IssueRecord
from schemas.merges import Member, Pending, Signal, SignalKind
from schemas.times import parse_iso

MAX_MEMBERS: Final = 100
"""Issues merged into one: bounds its record to about a megabyte."""


class RefusedChange(Exception):
    """The change is not possible; the text says why."""


class Exchanged(NamedTuple):
    """A record after a change, the activities to publish, and the signals to other records."""

    record: IssueRecord
    activities: tuple[Activity, ...] = ()
    signals: tuple[Signal, ...] = ()


def merge(record: IssueRecord, command: Command, data: MergeData) -> Exchanged:
    """Request issues to join; no request while an earlier merge or unmerge is pending. Raises RefusedChange."""
    life = record.life
    known = {record.id, *life.members}
    named = {_issue_of(record, fingerprint): fingerprint for fingerprint in data.fingerprints}
    wanted = {issue: "" for issue in data.issues if issue not in known}
    wanted |= {issue: fingerprint for issue, fingerprint in named.items() if issue not in known}
    room = MAX_MEMBERS - len(life.members)
    if len(wanted) > room:
        raise RefusedChange(f"at most {MAX_MEMBERS} issues can be merged into one")
    if life.pending:
        return Exchanged(record)
    pending = {issue: _pending("join", command) for issue in wanted}
    # A doubt: each issue compares its own members with `room`. Several that join by one command may exceed MAX_MEMBERS
    # together, which only makes the record larger.
    signals = [
        replace(_request(record, "join", issue, command.id, command), room=room, fingerprint=fingerprint)
        for issue, fingerprint in wanted.items()
    ]
    return Exchanged(replace(record, life=replace(life, pending=pending)), signals=tuple(signals))


def unmerge(record: IssueRecord, command: Command, data: UnmergeData) -> Exchanged:
    """Release members with their counts.

    Raises RefusedChange where none of the fingerprints is merged, or has events yet.
    """
    life = record.life
    leaving = {
        issue: member
        for issue, member in life.members.items()
        if member.fingerprint in data.fingerprints and member.figures.events
    }
    if not leaving:
        raise RefusedChange("none of these fingerprints is merged into the issue and has events")
    pending = {issue: _pending("leave", command) for issue in leaving}
    members = {issue: member for issue, member in life.members.items() if issue not in leaving}
    details = {"issues": list(leaving), "fingerprints": [member.fingerprint for member in leaving.values()]}
    return Exchanged(
        replace(record, life=replace(life, pending=life.pending | pending, members=members)),
        (by_command(record, command, "unmerged", details),),
        tuple(_request(record, "leave", issue, member.join, command) for issue, member in leaving.items()),
    )


def without_events(signal: Signal) -> IssueRecord | None:
    """The record of the fingerprint that a `join` names, before its first event.

    None where the signal names none of this issue.
    """
    if not signal.fingerprint or issue_id(int(signal.project_id), int(signal.fingerprint, 16)) != int(
        signal.issue, 16
    ):
        return None
    at = parse_iso(signal.at)
    return IssueRecord(
        id=signal.issue,
        project_id=signal.project_id,
        fingerprints=(signal.fingerprint,),
        error_type="",
        message="",
        culprit="",
        first_seen_ms=at,
        last_seen_ms=at,
    )


def apply_signal(record: IssueRecord, signal: Signal) -> Exchanged:
    """Apply a signal to the record that it is for; an outdated one changes nothing."""
    return _RECEIVERS[signal.kind](record, signal)


def refusal(signal: Signal, reason: str) -> Signal:
    """The answer that refuses a `join`."""
    return replace(_reply(signal, signal.issue, "refused"), reason=reason)


def _join(record: IssueRecord, signal: Signal) -> Exchanged:
    life = record.life
    if record.merged_into == signal.sender and life.join == signal.join:
        # A repeat. Signals are written before the state, so the answer is in the log already.
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
    # The part is hidden before the whole shows it. In the reverse order, its events would be shown twice for a moment.
    joined = replace(alone, merged_into=signal.sender, life=replace(alone.life, join=signal.join, members={}))
    # A command may merge it twice: into an issue that was itself merged, and again after a rebuild that undid that.
    details = {"into": signal.sender}
    return Exchanged(
        joined, (_activity(record, signal, "merged", details, f"-into-{signal.sender}"),), (answer,)
    )


def _joined(record: IssueRecord, signal: Signal) -> Exchanged:
    life, request = record.life, record.life.pending.get(signal.sender)
    if request is None or request.kind != "join" or request.command != signal.join or signal.figures is None:
        # The request is no longer pending: the sender must not consider itself merged, and gets its members back.
        leave = replace(_reply(signal, record.id, "leave"), members=signal.members)
        return Exchanged(record, signals=(leave,))
    joined = {signal.sender: Member(signal.fingerprint, signal.join, signal.version, signal.figures)}
    # Its members count from here on with the figures in the answer. Their news under the old merge is ignored, which
    # loses nothing: figures are totals, and the reply to `move` brings the latest.
    joined |= _taken(signal)
    requested = replace(signal, by=request.by, at=request.at)
    details = {"issue": signal.sender, "fingerprints": [member.fingerprint for member in joined.values()]}
    return Exchanged(
        replace(record, life=replace(life, members=life.members | joined, pending=_without(life.pending, signal))),
        (_activity(record, requested, "merged", details, f"-{signal.sender}"),),
        _moves(record, requested),
    )  # fmt: skip


def _taken(signal: Signal) -> dict[str, Member]:
    """The members that a signal brings, as those of its merge."""
    return {issue: replace(member, join=signal.join) for issue, member in signal.members.items()}


def _moves(record: IssueRecord, signal: Signal) -> tuple[Signal, ...]:
    """What tells the members that a signal brings which issue they belong to now; each answers with its news."""
    return tuple(
        Signal(
            kind="move",
            issue=issue,
            sender=record.id,
            project_id=record.project_id,
            join=signal.join,
            by=signal.by,
            at=signal.at,
        )
        for issue in signal.members
    )


def _answered(record: IssueRecord, signal: Signal) -> Exchanged:
    """Apply `refused` and `left`: the request is answered."""
    kind = "join" if signal.kind == "refused" else "leave"
    request = record.life.pending.get(signal.sender)
    # A refusal that is read again must not end a later request.
    if request is None or request.kind != kind or (kind == "join" and request.command != signal.join):
        return Exchanged(record)
    return Exchanged(
        replace(record, life=replace(record.life, pending=_without(record.life.pending, signal)))
    )


def _move(record: IssueRecord, signal: Signal) -> Exchanged:
    # Without a check: in the log it is before a `leave` of the same sender, and the caller drops repeats.
    moved = replace(record, merged_into=signal.sender, life=replace(record.life, join=signal.join))
    return Exchanged(moved, signals=(_answer(own(record), signal, "news"),))


def _news(record: IssueRecord, signal: Signal) -> Exchanged:
    member = record.life.members.get(signal.sender)
    if member is None or member.join != signal.join or signal.figures is None:
        return Exchanged(record)
    known = member.version
    if signal.version <= known:
        return Exchanged(record)
    # Before the new figures replace the old ones: a name in either is not new.
    before = [figures(record), *(one.figures for one in record.life.members.values())]
    releases = names_of(part.releases for part in before)
    environments = names_of(part.environments for part in before)
    member = replace(member, version=signal.version, figures=signal.figures)
    record = replace(record, life=replace(record.life, members=record.life.members | {signal.sender: member}))
    parts = [figures(record), *(one.figures for one in record.life.members.values())]
    users = united(part.users_sketch for part in parts).count
    activities: list[Activity] = []
    for news in signal.news:
        # A replay may split news differently: each is judged by its own version.
        if news.version > known:
            shown = SeenFields(
                new_names(news.releases, releases),
                new_names(news.environments, environments),
                [part.hours for part in parts],
                users,
            )
            releases |= news.releases.keys()
            environments |= set(news.environments)
            record, found = findings(record, shown, news, origin=signal.sender)
            record, judged = transition(record, news, found, signal.sender)
            activities += with_subject((*found, *judged), record, news)
    return Exchanged(record, tuple(activities))


def _leave(record: IssueRecord, signal: Signal) -> Exchanged:
    answer = _answer(own(record), signal, "left")
    if record.merged_into != signal.sender or record.life.join != signal.join:
        # Not a member, but the sender's request stays pending until it is answered.
        return Exchanged(record, signals=(answer,))
    alone = replace(record, merged_into=None, life=replace(record.life, join="", members=_taken(signal)))
    activity = _activity(record, signal, "unmerged", {"from": signal.sender})
    return Exchanged(alone, (activity,), (answer, *_moves(record, signal)))


_RECEIVERS: Final[dict[SignalKind, Callable[[IssueRecord, Signal], Exchanged]]] = {
    "join": _join,
    "joined": _joined,
    "refused": _answered,
    "move": _move,
    "news": _news,
    "leave": _leave,
    "left": _answered,
}


def _issue_of(record: IssueRecord, fingerprint: str) -> str:
    return hex64(issue_id(int(record.project_id), int(fingerprint, 16)))


def _request(record: IssueRecord, kind: SignalKind, issue: str, join: str, command: Command) -> Signal:
    return Signal(
        kind=kind,
        issue=issue,
        sender=record.id,
        project_id=record.project_id,
        join=join,
        by=command.by,
        at=command.at,
    )


def _pending(kind: Literal["join", "leave"], command: Command) -> Pending:
    return Pending(kind=kind, command=command.id, by=command.by, at=command.at)


def _reply(signal: Signal, sender: str, kind: SignalKind) -> Signal:
    return Signal(
        kind=kind,
        issue=signal.sender,
        sender=sender,
        project_id=signal.project_id,
        join=signal.join,
        by=signal.by,
        at=signal.at,
    )


def _answer(alone: IssueRecord, signal: Signal, kind: SignalKind) -> Signal:
    counted = figures(alone) if kind != "left" else None
    return replace(_reply(signal, alone.id, kind), version=alone.version, figures=counted)


def _activity(
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
    return {issue: request for issue, request in pending.items() if issue != signal.sender}
