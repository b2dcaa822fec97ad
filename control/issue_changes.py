"""Changes of issues, as the dashboard and the CLI make them.

A change is made once its effect is in the topic `issues`. The answer then waits briefly for ClickHouse, so
that the next read shows the change. If ClickHouse doesn't answer in time, the record from the topic is the
answer.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol, TypeVar

import msgspec

from control import project_edits
from control.issue_commands import Commands
from control.ports import IssueChangePort, ProjectPort
from schemas.changes import MAX_KNOWN, MAX_RELEASE, CommandKind, IgnoreUntil, Update, UpdateData, violations
from schemas.errors import BadChange, ChangeRefused, Detail
from schemas.idempotency import request_id
from schemas.ids import hex64, issue_id, uuid7
from schemas.issues import Command, IssueRecord
from schemas.projects import Project
from schemas.times import iso, parse_iso
from storage.client import ClickHouseError
from storage.errors import NotFound, ReadError
from storage.reader.answers import Issue
from storage.reader.count_calls import ListReleases
from storage.reader.issue_calls import CountIssues, GetIssueRow, GetIssueVersions, IssueVersion, ListActivity
from storage.reader.issue_rows import IssueRow, issue_of, row_of
from storage.reader.reader import Reader

log = logging.getLogger(__name__)

VISIBLE_SECONDS: Final = 3.0
"""How long to wait until ClickHouse shows a change; its counts get another third of that."""
MAX_FINGERPRINTS: Final = 101
"""Fingerprints of one issue: its own and those that the processors allow to be merged into it."""
_POLL_SECONDS: Final = 0.03
_CONCURRENT_READS: Final = 4
_RECENT: Final = 500
"""Newest activity entries of an issue that are searched for an earlier unmerge."""
A = TypeVar("A")
B = TypeVar("B")


class CommandSender(Protocol):
    """The part of `Commands` that `IssueChanges` needs."""

    async def apply(self, commands: Sequence[Command]) -> dict[str, IssueRecord]:
        """Send commands; each issue's record once its command is applied. Raises ChangesUnavailable."""
        ...


class IssueChanges:
    """Makes changes of issues. `by` names the author; a change repeated under its `key` is made once.

    Raises NotFound, BadChange, ChangeRefused, KeyReused (the issue knows the key from another change),
    ChangesUnavailable, and what the reader raises.
    """

    def __init__(
        self,
        reader: Reader,
        commands: Commands | CommandSender,
        now_ms: Callable[[], int] | None = None,
        visible_seconds: float = VISIBLE_SECONDS,
    ) -> None:
        self._reader = reader
        self._commands = commands
        self._now_ms = now_ms or (lambda: time.time_ns() // 1_000_000)
        self._visible_seconds = visible_seconds

    async def update(self, issue: str, update: Update, *, by: str, key: str = "") -> Issue:
        """Change the status, fix release, snooze or assignee of an issue."""
        row = await self._reader.read(GetIssueRow(issue))
        (changed,) = await self._update(row.project_id, [row], update, by, key)
        return changed

    async def update_many(
        self, project: int, issues: Sequence[str], update: Update, *, by: str, key: str = ""
    ) -> list[Issue]:
        """Apply the same change to many issues of a project; ids of one merged issue count once."""
        rows = await self._rows(issues, project)
        unique = list({row.issue_id: row for row in rows}.values())
        return await self._update(project, unique, update, by, key)

    async def comment(self, issue: str, text: str, *, by: str, key: str = "") -> None:
        """Comment on an issue."""
        row = await self._reader.read(GetIssueRow(issue))
        await self._apply([row], "comment", {"text": text}, by, key, text)

    async def merge(self, issue: str, issues: Sequence[str], *, by: str, key: str = "") -> Issue:
        """Merge other issues into this one."""
        row = await self._reader.read(GetIssueRow(issue))
        others = {hex64(other.issue_id): other for other in await self._rows(issues, row.project_id)}
        members = list(others)
        others.pop(hex64(row.issue_id), None)
        fingerprints = len(row.fingerprints) + sum(len(other.fingerprints) for other in others.values())
        if fingerprints > MAX_FINGERPRINTS:
            raise BadChange([Detail("issues", f"an issue has at most {MAX_FINGERPRINTS} fingerprints")])
        records = await self._apply([row], "merge", {"issues": members}, by, key, sorted(issues))
        (record,) = records.values()
        if missing := sorted(set(others) - set(record.life.members)):
            raise ChangeRefused(f"another merge of {', '.join(missing)} is in progress: try again")
        (changed,) = await self._answers(row.project_id, [record], dict.fromkeys(others, record.id))
        return changed

    async def unmerge(self, issue: str, fingerprints: Sequence[str], *, by: str, key: str = "") -> Issue:
        """Split merged fingerprints off into issues of their own."""
        row = await self._reader.read(GetIssueRow(issue))
        merged = {hex64(number) for number in row.fingerprints[1:]}
        unknown = [fingerprint for fingerprint in fingerprints if fingerprint not in merged]
        wanted = sorted(fingerprints)
        if unknown and not await self._was_unmerged(hex64(row.issue_id), key, wanted):
            raise BadChange([Detail("fingerprints", f"{unknown[0]} is not merged into this issue")])
        records = await self._apply([row], "unmerge", {"fingerprints": wanted}, by, key, wanted)
        (record,) = records.values()
        split = {hex64(issue_id(row.project_id, int(fingerprint, 16))): None for fingerprint in fingerprints}
        (changed,) = await self._answers(row.project_id, [record], split)
        return changed

    async def _was_unmerged(self, issue: str, key: str, fingerprints: list[str]) -> bool:
        """Whether this request repeats an unmerge that was made: its fingerprints are no longer merged."""
        if not key:
            return False
        change = f"{issue}-{request_id(key, issue, 'unmerge', fingerprints)}-unmerged"
        page = await self._reader.read(ListActivity(issue, limit=_RECENT))
        return any(row.id == change for row in page.activity)

    async def _update(
        self, project: int, rows: Sequence[IssueRow], update: Update, by: str, key: str
    ) -> list[Issue]:
        if details := violations(update) or self._snooze_violations(update):
            raise BadChange(details)
        fields = {name: getattr(update, name) for name in Update.__struct_fields__}
        data = UpdateData(**fields, known=await self._releases(project) if update.resolved_in else ())
        records = await self._apply(rows, "update", msgspec.to_builtins(data), by, key, update)
        return await self._answers(project, list(records.values()), {})

    def _snooze_violations(self, update: Update) -> list[Detail]:
        until = update.ignore_until
        if isinstance(until, IgnoreUntil) and until.time and parse_iso(until.time) <= self._now_ms():
            return [Detail("ignoreUntil.time", "must be in the future")]
        return []

    async def _rows(self, issues: Sequence[str], project: int) -> list[IssueRow]:
        """The stored rows of issues. Raises BadChange if one belongs to another project."""
        rows = await gather_few(lambda issue: self._reader.read(GetIssueRow(issue)), issues)
        for issue, row in zip(issues, rows, strict=True):
            if row.project_id != project:
                raise BadChange([Detail("issues", f"{issue} is not an issue of this project")])
        return rows

    async def _releases(self, project: int) -> tuple[str, ...]:
        """The project's newest releases, ordered by when they were first seen."""
        releases = (await self._reader.read(ListReleases(project, limit=MAX_KNOWN))).releases
        ordered = sorted(releases, key=lambda release: (release.first_seen, release.release))
        return tuple(release.release[:MAX_RELEASE] for release in ordered)

    async def _apply(
        self,
        rows: Sequence[IssueRow],
        kind: CommandKind,
        data: dict[str, Any],
        by: str,
        key: str,
        request: object,
    ) -> dict[str, IssueRecord]:
        """Send a command to each issue. The key identifies `request`: the input without data looked up for it."""
        at = iso(self._now_ms())
        commands = []
        for row in rows:
            issue = hex64(row.issue_id)
            command = request_id(key, issue, kind, request) or str(uuid7())
            commands.append(Command(command, issue, str(row.project_id), kind, by, at, data))
        return await self._commands.apply(commands)

    async def _answers(
        self, project: int, records: Sequence[IssueRecord], merged_into: Mapping[str, str | None]
    ) -> list[Issue]:
        """The changed issues. `merged_into` maps merged or split-off issues to the issue they now belong to."""
        now_ms = self._now_ms()
        try:
            await self._wait_visible(project, records, merged_into)
            async with asyncio.timeout(self._visible_seconds / 3):
                return await self._reader.read(
                    CountIssues(project, [row_of(record, now_ms) for record in records])
                )
        except (ReadError, ClickHouseError, TimeoutError) as error:
            log.warning("%d changes applied, but ClickHouse can't show them yet: %r", len(records), error)
            return [issue_of(record, now_ms) for record in records]

    async def _wait_visible(
        self, project: int, records: Sequence[IssueRecord], merged_into: Mapping[str, str | None]
    ) -> None:
        """Return once ClickHouse shows the change, or after a timeout."""
        expected = {record.id: record.version for record in records}
        with suppress(TimeoutError):
            async with asyncio.timeout(self._visible_seconds):
                while True:
                    stored = await self._reader.read(GetIssueVersions(project, [*expected, *merged_into]))
                    if _are_visible(stored, expected, merged_into):
                        return
                    await asyncio.sleep(_POLL_SECONDS)


def _are_visible(
    stored: Mapping[str, IssueVersion], expected: Mapping[str, int], merged_into: Mapping[str, str | None]
) -> bool:
    """Whether all expected versions are stored and every merged issue points to its target."""
    newest = all(issue in stored and stored[issue].version >= version for issue, version in expected.items())
    return newest and all(
        issue in stored and stored[issue].merged_into == target for issue, target in merged_into.items()
    )


async def set_discarded(
    projects: ProjectPort,
    changes: IssueChangePort,
    issue: Issue,
    discard: bool,
    *,
    by: str,
    request: str = "",
) -> Issue:
    """Drop the issue's new events and ignore the issue, or store new events again and reopen it.

    The project's record holds the fingerprints, and the grouper drops their events. `request` is the
    request's name under its idempotency key. Raises BadChange, KeyReused, ProjectsUnavailable and what
    `update` raises; a retry completes a partial change.
    """
    fingerprints: Sequence[str] = issue.fingerprints
    change = project_edits.discard if discard else project_edits.undo_discard

    def edit(old: Project) -> Project:
        return project_edits.apply_once(old, request, lambda project: change(project, fingerprints))

    if await projects.edit(int(issue.project_id), edit) is None:
        raise NotFound("this project doesn't exist")
    return await changes.update(issue.id, Update(status="ignored" if discard else "open"), by=by, key=request)


async def gather_few(work: Callable[[A], Awaitable[B]], items: Sequence[A]) -> list[B]:
    """The results of `work` for each item, with only a few running at a time: others use the reader too."""
    slots = asyncio.Semaphore(_CONCURRENT_READS)

    async def run(item: A) -> B:
        async with slots:
            return await work(item)

    return list(await asyncio.gather(*map(run, items)))
