"""The effects of commands, signals and increments on issues, collected for one batch. Pure."""

from collections.abc import Callable, Iterable
from typing import Final

import msgspec
from msgspec.structs import replace

from processors.aggregator.findings import created_activity, findings, owner_activity, with_subject
from processors.aggregator.issue_fold import Fold
from processors.aggregator.issue_merges import (
    Exchanged,
    RefusedChange,
    apply_signal,
    merge,
    refusal,
    unmerge,
    without_events,
)
from processors.aggregator.lifecycle import by_command, transition, update
from schemas.changes import (
    CommentData,
    MergeData,
    RedactData,
    UnmergeData,
    UpdateData,
    is_issue,
    violations,
)
from schemas.idempotency import uses_known_key
from schemas.increments import Increment
from schemas.issues import Activity, Command, DeltaRecord, IssueRecord
from schemas.life import MAX_COMMANDS, MAX_SIGNALS, destination, forwarded, refused
from schemas.merges import NewEvents, Signal
from schemas.times import parse_iso

MAX_ID: Final = 200
Find = Callable[[str], Fold | None]
"""The fold of an issue by its id, or None."""


class BadCommand(Exception):
    """The command is invalid; the text says why."""


class BatchChanges:
    """The outputs of a batch: changed folds, activities, and records for `issue-deltas` with the issue they are for."""

    def __init__(self) -> None:
        self.dirty: dict[str, Fold] = {}
        self.activities: list[Activity] = []
        self.deltas: list[tuple[str, DeltaRecord]] = []
        self._news: dict[str, list[NewEvents]] = {}

    def increment(
        self, fold: Fold, partition: int, offset: int, increment: Increment, *, is_first: bool = False
    ) -> None:
        """Judge an increment that was just folded in.

        It may create the issue, show something new, or reopen it. In a merged issue it is news for its target.
        """
        state = fold.counted_state()
        news = NewEvents(
            version=fold.version,
            partition=partition,
            offset=offset,
            events=increment.events,
            releases=increment.releases,
            users=increment.users,
            received_ms=increment.received_ms,
            environments=increment.environments,
        )
        if state.merged_into is not None:
            self._news.setdefault(fold.id, []).append(news)
            return
        opening: list[Activity] = []
        if is_first:
            opening.append(created_activity(state, increment))
            if increment.owner and state.assignee is None:
                state = replace(state, assignee=increment.owner)
                opening.append(owner_activity(opening[0], increment.owner))
        record, found = findings(state, fold.shown(), news)
        change = transition(record, news, found)
        fold.set_state(change.record)
        self._add_activities(fold, with_subject((*opening, *found, *change.activities), change.record, news))

    def command(self, offset: int, command: Command, find: Find) -> None:
        """Apply a command at this offset of `issue-deltas`.

        Raises BadCommand and RefusedChange, with no state changed.
        """
        fold = find(command.issue)
        if command.kind == "show":
            if fold is not None:
                self.dirty[fold.id] = fold
            return
        if fold is None:
            raise RefusedChange("no such issue")
        _check(command)
        life = fold.state.life
        if offset <= life.applied:
            return
        # A replay or rebuild delivers it again: a command that was refused or forwarded before must not be applied now.
        if uses_known_key(command.id, life.commands) or destination(command.id, life.signals) is not None:
            # A repeated request: the record is published unchanged, because its sender waits for it and finds the
            # command there.
            self.dirty[fold.id] = fold
            return
        if command.project_id not in {"", fold.state.project_id}:
            self._remember(fold, offset, refused(command.id))
            raise RefusedChange("an issue of another project")
        if command.kind == "redact":
            # Also in a merged issue: its own description is visible again once it is unmerged.
            fold.redact(_redact(command))
        elif fold.state.merged_into is not None:
            target = fold.state.merged_into
            self.deltas.append((target, DeltaRecord(command=replace(command, issue=target))))
            self._remember(fold, offset, forwarded(command.id, target))
            return
        try:
            changed = _commanded(fold.record(), command)
        except RefusedChange:
            self._remember(fold, offset, refused(command.id))
            raise
        self._change(fold, offset, changed, commands=(*life.commands, command.id)[-MAX_COMMANDS:])
        if command.kind == "redact" and fold.state.merged_into is not None:
            # The issue that it is merged into may be described by the removed text.
            self._news.setdefault(fold.id, [])

    def signal(self, offset: int, signal: Signal, find: Find, keep: Callable[[Fold], None]) -> None:
        """Apply a signal at this offset of `issue-deltas`; `keep` takes the fold of an issue that it opens.

        Raises BadCommand and RefusedChange.
        """
        if not (is_issue(signal.issue) and is_issue(signal.sender)):
            raise BadCommand("a signal whose issues have bad ids")
        fold = find(signal.issue)
        if fold is None and signal.kind == "join":
            fold = _opened(signal, offset)
            if fold is not None:
                keep(fold)
        if fold is None or fold.state.project_id != signal.project_id:
            if signal.kind == "join":
                self._send(refusal(signal, "no such issue"))
                return
            raise RefusedChange("no such issue")
        life = fold.state.life
        if offset <= life.applied:
            return
        if signal.kind in {"news", "refused"}:
            # News is frequent and needs few figures of this issue; a repeat is known by its version. A refusal answers
            # what waits for it: after a rebuild, one command may ask, and be refused, a second time.
            changed = apply_signal(fold.counted_state(), signal)
            if changed.record is not fold.state:
                self._change(fold, offset, changed)
            return
        # A repeat after a crash must not be answered differently.
        if signal.name not in life.signals:
            changed = apply_signal(fold.record(), signal)
            self._change(fold, offset, changed, signals=(*life.signals, signal.name)[-MAX_SIGNALS:])

    def finish(self) -> None:
        """End the batch: send news of merged issues to the issues that they are merged into."""
        for issue, news in self._news.items():
            fold = self.dirty[issue]
            state = fold.state
            if state.merged_into is not None:
                self._send(
                    Signal(
                        kind="news",
                        issue=state.merged_into,
                        sender=issue,
                        project_id=state.project_id,
                        join=state.life.join,
                        version=fold.version,
                        figures=fold.figures(),
                        news=news,
                    )
                )

    def _remember(self, fold: Fold, offset: int, name: str) -> None:
        """Note that the record at this offset had no effect, for its repeats too; the version doesn't grow."""
        life = fold.state.life
        signals = (*life.signals, name)[-MAX_SIGNALS:]
        fold.set_state(replace(fold.state, life=replace(life, applied=offset, signals=signals)))
        self.dirty[fold.id] = fold

    def _change(self, fold: Fold, offset: int, changed: Exchanged, **lists: tuple[str, ...]) -> None:
        record = changed.record
        fold.change_state(replace(record, life=replace(record.life, applied=offset, **lists)))
        self.dirty[fold.id] = fold
        self._add_activities(fold, changed.activities)
        for signal in changed.signals:
            self._send(signal)

    def _add_activities(self, fold: Fold, activities: Iterable[Activity]) -> None:
        self.activities += (replace(activity, version=fold.version) for activity in activities)

    def _send(self, signal: Signal) -> None:
        self.deltas.append((signal.issue, DeltaRecord(signal=signal)))


def _opened(signal: Signal, offset: int) -> Fold | None:
    try:
        record = without_events(signal)
    except ValueError as error:
        raise BadCommand(f"a signal with a bad project, fingerprint or time: {error}") from None
    return None if record is None else Fold.of(record, offset)


def _check(command: Command) -> None:
    if not 1 <= len(command.id) <= MAX_ID:
        raise BadCommand(f"the id of a command has 1 to {MAX_ID} characters")
    try:
        parse_iso(command.at)
    except ValueError:
        raise BadCommand(f"bad time {command.at[:40]!r}") from None


def _redact(command: Command) -> RedactData:
    try:
        return msgspec.convert(command.data, RedactData)
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
    data = msgspec.convert(command.data, UpdateData)
    if wrong := violations(data):
        raise BadCommand("; ".join(f"{detail.field} {detail.message}".strip() for detail in wrong))
    return Exchanged(*update(record, command, data))


def _comment(record: IssueRecord, command: Command) -> Exchanged:
    data = msgspec.convert(command.data, CommentData)
    return Exchanged(record, (by_command(record, command, "commented", {"text": data.text}),))


_COMMANDS: Final[dict[str, Callable[[IssueRecord, Command], Exchanged]]] = {
    "update": _update,
    "comment": _comment,
    "redact": lambda record, _: Exchanged(record),
    "merge": lambda record, command: merge(record, command, msgspec.convert(command.data, MergeData)),
    "unmerge": lambda record, command: unmerge(record, command, msgspec.convert(command.data, UnmergeData)),
}
