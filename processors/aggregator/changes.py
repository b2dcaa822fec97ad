"""What commands, signals and increments do to the records of issues, gathered until it is written. Pure."""

from collections.abc import Callable
from typing import Final

import msgspec
from msgspec.structs import replace

from processors.aggregator.fold import Fold
from processors.aggregator.lifecycle import by_command, judge, update
from processors.aggregator.merges import Exchanged, RefusedChange, merge, receive, refusal, unmerge
from schemas.changes import (
    CommentData,
    MergeData,
    RedactData,
    UnmergeData,
    UpdateData,
    is_issue,
    read_data,
    violations,
)
from schemas.idempotency import uses_known_key
from schemas.increments import Increment
from schemas.issues import Activity, Command, DeltaRecord, IssueRecord
from schemas.life import MAX_COMMANDS, MAX_SIGNALS
from schemas.merges import News, Signal
from schemas.times import parse_iso

MAX_ID: Final = 200
Find = Callable[[str], Fold | None]
"""The fold of an issue by its id, None where there is no such issue."""


class BadCommand(Exception):
    """The command can't be understood; the text says why."""


class BatchChanges:
    """What follows from a take: folds that changed, activities, and records for `issue-deltas` by the issue they are for."""

    def __init__(self) -> None:
        self.dirty: dict[str, Fold] = {}
        self.activities: list[Activity] = []
        self.deltas: list[tuple[str, DeltaRecord]] = []
        self._news: dict[str, list[News]] = {}

    def increment(self, fold: Fold, partition: int, offset: int, increment: Increment) -> None:
        """An increment that has just been folded in to an issue that is not quiet: it may end a state, or be news for another."""
        state = fold.state
        news = News(
            fold.version,
            partition,
            offset,
            increment.events,
            increment.releases,
            increment.users,
            increment.received_ms,
        )
        if state.merged_into is not None:
            self._news.setdefault(fold.id, []).append(news)
            return
        judged = judge(state, news)
        fold.keep(judged.record)
        self.activities += judged.activities

    def command(self, offset: int, command: Command, find: Find) -> None:
        """A command at this offset of `issue-deltas`. Raises BadCommand and RefusedChange, with no state changed."""
        fold = find(command.issue)
        if fold is None or fold.state.project_id != command.project_id:
            raise RefusedChange("no such issue")
        _check(command)
        life = fold.state.life
        if offset <= life.applied:
            return
        if uses_known_key(command.id, life.commands):
            # Published again as it is: the one who asks again waits for it, and sees there whether it asked for something else.
            self.dirty[fold.id] = fold
            return
        # Passed on again after a crash or a rebuild, it must not be made now where it was refused or passed on before.
        name = f"command-{command.id}"
        if name in life.signals:
            return
        if command.kind == "redact":
            # Also of a merged issue: what it says of itself is shown again once it is taken out.
            fold.redact(_redact(command))
        elif fold.state.merged_into is not None:
            target = fold.state.merged_into
            self.deltas.append((target, DeltaRecord(command=replace(command, issue=target))))
            self._remember(fold, offset, name)
            return
        try:
            changed = _commanded(fold.record(), command)
        except RefusedChange:
            self._remember(fold, offset, name)
            raise
        self._settle(fold, offset, changed, commands=(*life.commands, command.id)[-MAX_COMMANDS:])
        if command.kind == "redact" and fold.state.merged_into is not None:
            # What it is a part of may be described by the words that were taken out.
            self._news.setdefault(fold.id, [])

    def signal(self, offset: int, signal: Signal, find: Find) -> None:
        """A signal at this offset of `issue-deltas`. Raises BadCommand and RefusedChange."""
        if not (is_issue(signal.issue) and is_issue(signal.sender)):
            raise BadCommand("a signal between what are no issues")
        fold = find(signal.issue)
        if fold is None or fold.state.project_id != signal.project_id:
            if signal.kind == "join":
                self._send(refusal(signal, "no such issue"))
                return
            raise RefusedChange("no such issue")
        life = fold.state.life
        if offset <= life.applied:
            return
        if signal.kind == "news":
            # These come often and need no sums; what has come before is known by its version.
            changed = receive(fold.state, signal)
            if changed.record is not fold.state:
                self._settle(fold, offset, changed)
            return
        # Written again after a crash, it must not be answered otherwise than it was.
        name = f"{signal.kind}-{signal.sender}-{signal.join}"
        if name not in life.signals:
            changed = receive(fold.record(), signal)
            self._settle(fold, offset, changed, signals=(*life.signals, name)[-MAX_SIGNALS:])

    def finish(self) -> None:
        """The last of a take: tell other issues what came to their members."""
        for issue, news in self._news.items():
            fold = self.dirty[issue]
            state = fold.state
            if state.merged_into is not None:
                self._send(
                    Signal(
                        "news",
                        state.merged_into,
                        issue,
                        state.project_id,
                        state.life.join,
                        version=fold.version,
                        figures=fold.figures(),
                        news=news,
                    )
                )

    def _remember(self, fold: Fold, offset: int, name: str) -> None:
        """What came at this offset changes nothing here, nor when it comes again; so its record's version stays."""
        life = fold.state.life
        signals = (*life.signals, name)[-MAX_SIGNALS:]
        fold.keep(replace(fold.state, life=replace(life, applied=offset, signals=signals)))
        self.dirty[fold.id] = fold

    def _settle(self, fold: Fold, offset: int, changed: Exchanged, **known: tuple[str, ...]) -> None:
        record = changed.record
        fold.settle(replace(record, life=replace(record.life, applied=offset, **known)))
        self.dirty[fold.id] = fold
        self.activities += changed.activities
        for signal in changed.signals:
            self._send(signal)

    def _send(self, signal: Signal) -> None:
        self.deltas.append((signal.issue, DeltaRecord(signal=signal)))


def _check(command: Command) -> None:
    if not 1 <= len(command.id) <= MAX_ID:
        raise BadCommand(f"the id of a command has 1 to {MAX_ID} characters")
    try:
        parse_iso(command.at)
    except ValueError:
        raise BadCommand(f"bad time {command.at[:40]!r}") from None


def _redact(command: Command) -> RedactData:
    try:
        return read_data(command.data, RedactData)
    except msgspec.ValidationError as error:
        raise BadCommand(f"bad data of {command.kind}: {error}") from None


def _commanded(record: IssueRecord, command: Command) -> Exchanged:
    handle = _COMMANDS.get(command.kind)
    if handle is None:
        raise BadCommand(f"unknown command {command.kind}")
    try:
        return handle(record, command)
    except msgspec.ValidationError as error:
        raise BadCommand(f"bad data of {command.kind}: {error}") from None


def _update(record: IssueRecord, command: Command) -> Exchanged:
    data = read_data(command.data, UpdateData)
    if wrong := violations(data):
        raise BadCommand("; ".join(f"{detail.field} {detail.message}".strip() for detail in wrong))
    return Exchanged(*update(record, command, data))


def _comment(record: IssueRecord, command: Command) -> Exchanged:
    data = read_data(command.data, CommentData)
    return Exchanged(record, (by_command(record, command, "commented", {"text": data.text}),))


_COMMANDS: Final[dict[str, Callable[[IssueRecord, Command], Exchanged]]] = {
    "update": _update,
    "comment": _comment,
    "redact": lambda record, _: Exchanged(record),
    "merge": lambda record, command: merge(record, command, read_data(command.data, MergeData)),
    "unmerge": lambda record, command: unmerge(record, command, read_data(command.data, UnmergeData)),
}
