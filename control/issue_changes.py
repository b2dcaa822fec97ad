"""Changes of issues, as the dashboard and the CLI make them.

A change is a command to an issue. The issue's record in the topic `issues` decides: it says whether the change
is made, and of which issue. ClickHouse is auxiliary: it reports immediately that an issue doesn't exist, knows
the project's releases, and counts the range. The change waits for it briefly, so that the next
read shows the change; without it, the record is the answer.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar

import msgspec

from control import project_edits
from control.issue_commands import Commands, is_made
from control.project_store import ProjectStore
from schemas.change_records import Author
from schemas.changes import MAX_KNOWN, MAX_RELEASE, CommandKind, IgnoreUntil, Update, UpdateData, violations
from schemas.errors import BadChange, ChangeRefused, ChangesUnavailable, Detail
from schemas.idempotency import request_id
from schemas.ids import hex64, issue_id, uuid7
from schemas.issues import Command, IssueRecord
from schemas.projects import Project
from schemas.read_api import Issue
from schemas.times import iso, parse_iso
from storage.client import ClickHouseError
from storage.errors import NO_ISSUE, NotFound, ReadError
from storage.read.counts.count_calls import ListReleases
from storage.read.issue_rows import issue_of, row_of
from storage.read.issues.issue_calls import CountIssues, FindProject, GetIssueVersions, IssueVersion
from storage.read.reader import Reader

log = logging.getLogger(__name__)

ANSWER_SECONDS: Final = 3.0
"""How long an answer waits for ClickHouse, from the request on; the last third is for the counts."""
LOOK_SECONDS: Final = 1.0
"""How long ClickHouse is asked for the issues' project or its releases, and the processors for issues that
ClickHouse doesn't have."""
MAX_FINGERPRINTS: Final = 101
"""Fingerprints of one issue: its own and those that the processors allow to be merged into it."""
_POLL_SECONDS: Final = 0.03
_CONCURRENT_READS: Final = 4
_SILENT: Final = (ReadError, ClickHouseError, TimeoutError)
A = TypeVar("A")
B = TypeVar("B")


class IssueChanges:
    """Makes changes of issues. `by` names the author; a change repeated under its `key` is made once.

    Raises NotFound, BadChange, ChangeRefused, KeyReused (the issue knows the key from another change) and
    ChangesUnavailable.
    """

    def __init__(
        self,
        reader: Reader,
        commands: Commands,
        now_ms: Callable[[], int] | None = None,
        answer_seconds: float = ANSWER_SECONDS,
    ) -> None:
        self._reader = reader
        self._commands = commands
        self._now_ms = now_ms or (lambda: time.time_ns() // 1_000_000)
        self._answer_seconds = answer_seconds

    async def find(self, issues: Sequence[str]) -> list[Issue]:
        """Issues as the processors know them, each or the issue that it is merged into."""
        now_ms = self._now_ms()
        return [issue_of(record, now_ms) for record in (await self._records(issues)).values()]

    async def update(self, issue: str, update: Update, *, by: str, key: str = "") -> Issue:
        """Change the status, fix release, snooze or assignee of an issue."""
        (changed,) = await self._update([issue], None, update, by, (key, issue))
        return changed

    async def update_many(
        self, project: int, issues: Sequence[str], update: Update, *, by: str, key: str = ""
    ) -> list[Issue]:
        """Apply the same change to many issues of a project; ids of one merged issue count once."""
        return await self._update(issues, project, update, by, (key, str(project)))

    async def comment(self, issue: str, text: str, *, by: str, key: str = "") -> None:
        projects = await self._projects([issue])
        await self._apply(projects, "comment", {"text": text}, by, (key, issue), text)

    async def merge(self, issue: str, issues: Sequence[str], *, by: str, key: str = "") -> Issue:
        until = self._until()
        found = await self._records([issue, *issues])
        target, project = found[issue], found[issue].project_id
        _check_project(project, found)
        members = {found[other].id: len(found[other].fingerprints) for other in issues}
        others = {other: None for other in members if other != target.id}
        if len(target.fingerprints) + sum(members[other] for other in others) > MAX_FINGERPRINTS:
            raise _too_many()
        data = {"issues": list(members)}
        (record,) = await self._apply(
            {target.id: project}, "merge", data, by, (key, target.id), sorted(issues)
        )
        if missing := sorted(others.keys() - record.life.members.keys()):
            raise ChangeRefused(f"another merge of {', '.join(missing)} is in progress: try again")
        (changed,) = await self._answers([record], dict.fromkeys(others, record.id), until)
        return changed

    async def merge_fingerprints(self, issue: str, fingerprints: Sequence[str], *, by: str) -> None:
        """Have an issue count events of these fingerprints, also of such as have none yet."""
        projects = await self._projects([issue])
        await self._apply(
            projects, "merge", {"fingerprints": list(fingerprints)}, by, ("", issue), sorted(fingerprints)
        )

    async def unmerge(self, issue: str, fingerprints: Sequence[str], *, by: str, key: str = "") -> Issue:
        """Split merged fingerprints off into separate issues."""
        until, wanted = self._until(), sorted(fingerprints)
        whole = (await self._records([issue]))[issue]
        project = int(whole.project_id)
        unknown = [fingerprint for fingerprint in wanted if fingerprint not in whole.fingerprints[1:]]
        # A repeated request finds its fingerprints gone.
        is_known = request_id(key, whole.id, "unmerge", wanted) in whole.life.commands
        if unknown and not is_known:
            raise BadChange([Detail("fingerprints", f"{unknown[0]} is not merged into this issue")])
        members = whole.life.members.values()
        empty = [one.fingerprint for one in members if one.fingerprint in wanted and not one.figures.events]
        if empty:
            raise BadChange([Detail("fingerprints", f"{empty[0]} has no events yet")])
        (record,) = await self._apply(
            {whole.id: whole.project_id}, "unmerge", {"fingerprints": wanted}, by, (key, whole.id), wanted
        )
        split = {hex64(issue_id(project, int(fingerprint, 16))): None for fingerprint in fingerprints}
        (changed,) = await self._answers([record], split, until)
        return changed

    async def _update(
        self, issues: Sequence[str], project: int | None, update: Update, by: str, key: tuple[str, str]
    ) -> list[Issue]:
        if details := violations(update) or self._snooze_violations(update):
            raise BadChange(details)
        until, projects = self._until(), await self._projects(issues)
        if project is not None:
            _check_project(str(project), projects)
            projects = dict.fromkeys(projects, str(project))
        fields = {name: getattr(update, name) for name in Update.__struct_fields__}
        known = await self._releases(next(iter(projects.values()))) if update.resolved_in else ()
        data = msgspec.to_builtins(UpdateData(**fields, known=known))
        return await self._answers(await self._apply(projects, "update", data, by, key, update), {}, until)

    def _snooze_violations(self, update: Update) -> list[Detail]:
        until = update.ignore_until
        if isinstance(until, IgnoreUntil) and until.time and parse_iso(until.time) <= self._now_ms():
            return [Detail("ignoreUntil.time", "must be in the future")]
        return []

    def _until(self) -> float:
        return asyncio.get_running_loop().time() + self._answer_seconds

    async def _projects(self, issues: Sequence[str]) -> dict[str, str]:
        """The project of each issue, which never changes; all empty if ClickHouse doesn't answer. Raises NotFound."""
        issues = list(dict.fromkeys(issues))
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                found = dict(zip(issues, await gather_few(self._project, issues), strict=True))
        except _SILENT as error:
            log.warning(
                "can't read the project of issues %s from ClickHouse: %r",
                ", ".join(issues),
                error,
                extra={"event": "issue_project_read_failed"},
            )
            return dict.fromkeys(issues, "")
        if unknown := [issue for issue, project in found.items() if not project]:
            # The writer may be behind: the processors know.
            try:
                async with asyncio.timeout(LOOK_SECONDS):
                    records = await self._commands.show(unknown)
            except (ChangesUnavailable, TimeoutError):
                raise NotFound(NO_ISSUE) from None
            found |= {issue: record.project_id for issue, record in records.items()}
        return found

    async def _project(self, issue: str) -> str:
        try:
            return str(await self._reader.read(FindProject(issue)))
        except NotFound:
            return ""

    async def _records(self, issues: Sequence[str]) -> dict[str, IssueRecord]:
        """The record of each issue, or of the issue that it is merged into."""
        await self._projects(issues)
        return await self._commands.show(issues)

    async def _releases(self, project: str) -> tuple[str, ...]:
        """The project's newest releases, ordered by when they were first seen.

        Empty without ClickHouse: the issue knows its own.
        """
        if not project:
            return ()
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                releases = (await self._reader.read(ListReleases(int(project), limit=MAX_KNOWN))).releases
        except _SILENT as error:
            log.warning(
                "can't read the releases of project %s from ClickHouse: %r",
                project,
                error,
                extra={"event": "known_releases_read_failed"},
            )
            return ()
        ordered = sorted(releases, key=lambda release: (release.first_seen, release.release))
        return tuple(release.release[:MAX_RELEASE] for release in ordered)

    async def _apply(
        self,
        projects: Mapping[str, str],
        kind: CommandKind,
        data: dict[str, Any],
        by: str,
        key: tuple[str, str],
        request: object,
    ) -> list[IssueRecord]:
        """Send a command to each issue, and return the issues that it changed, each once.

        All have one id, so an issue that gets it twice, for two of its parts, applies it once. `key` has its
        scope. It identifies `request`: the input without data looked up for it.
        """
        given, scope = key
        name, at = request_id(given, scope, kind, request) or str(uuid7()), iso(self._now_ms())
        commands = [Command(name, issue, project, kind, by, at, data) for issue, project in projects.items()]
        found = await self._commands.apply(commands)
        for command in commands:
            if not is_made(found[command.issue], command):
                raise _refusal(command, found[command.issue])
        return list({record.id: record for record in found.values()}.values())

    async def _answers(
        self, records: Sequence[IssueRecord], merged_into: Mapping[str, str | None], until: float
    ) -> list[Issue]:
        """The changed issues. `merged_into` maps merged or split-off issues to the issue they now belong to."""
        now_ms, project = self._now_ms(), int(records[0].project_id)
        try:
            await self._wait_visible(project, records, merged_into, until - self._answer_seconds / 3)
            async with asyncio.timeout_at(until):
                return await self._reader.read(
                    CountIssues(project, [row_of(record, now_ms) for record in records])
                )
        except _SILENT as error:
            log.warning(
                "%d issue changes applied, but ClickHouse doesn't show them yet: %r",
                len(records),
                error,
                extra={"event": "issue_changes_read_failed"},
            )
            return [issue_of(record, now_ms) for record in records]

    async def _wait_visible(
        self,
        project: int,
        records: Sequence[IssueRecord],
        merged_into: Mapping[str, str | None],
        until: float,
    ) -> None:
        """Return once ClickHouse shows the change, or at `until`, a time of the loop."""
        expected = {record.id: record.version for record in records}
        with suppress(TimeoutError):
            async with asyncio.timeout_at(until):
                while True:
                    stored = await self._reader.read(GetIssueVersions(project, [*expected, *merged_into]))
                    if _are_visible(stored, expected, merged_into):
                        return
                    await asyncio.sleep(_POLL_SECONDS)


def _check_project(project: str, issues: Mapping[str, IssueRecord] | Mapping[str, str]) -> None:
    """Raises BadChange if an issue, given by its record or its project, is known to be of another project."""
    for issue, found in issues.items():
        if (found if isinstance(found, str) else found.project_id) not in {"", project}:
            raise _foreign(issue)


def _refusal(command: Command, record: IssueRecord) -> Exception:
    """Why the issue of this record refused the command."""
    if command.project_id not in {"", record.project_id}:
        return _foreign(command.issue)
    if command.kind == "merge":
        return _too_many()
    return ChangeRefused("the issue was changed meanwhile: try again")


def _foreign(issue: str) -> BadChange:
    return BadChange([Detail("issues", f"{issue} is not an issue of this project")])


def _too_many() -> BadChange:
    return BadChange([Detail("issues", f"an issue has at most {MAX_FINGERPRINTS} fingerprints")])


def _are_visible(
    stored: Mapping[str, IssueVersion], expected: Mapping[str, int], merged_into: Mapping[str, str | None]
) -> bool:
    """Whether all expected versions are stored and every merged issue points to its target."""
    newest = all(issue in stored and stored[issue].version >= version for issue, version in expected.items())
    return newest and all(
        issue in stored and stored[issue].merged_into == target for issue, target in merged_into.items()
    )


async def set_discarded(
    projects: ProjectStore,
    changes: IssueChanges,
    issue: Issue,
    discard: bool,
    author: Author,
    request: str = "",
) -> Issue:
    """Drop the issue's new events and ignore the issue, or store new events again and reopen it.

    The project's record holds the fingerprints, and the grouper drops their events. `request` is the
    request's name under its idempotency key. Raises BadChange, KeyReused, ProjectsUnavailable and the
    errors of `update`; a retry completes a partial change.
    """
    fingerprints: Sequence[str] = issue.fingerprints
    change = project_edits.discard if discard else project_edits.undo_discard

    def edit(old: Project) -> Project:
        return project_edits.apply_once(old, request, lambda project: change(project, fingerprints))

    if await projects.edit(int(issue.project_id), edit, author) is None:
        raise NotFound("this project doesn't exist")
    update = Update(status="ignored" if discard else "open")
    return await changes.update(issue.id, update, by=author.name, key=request)


async def gather_few(work: Callable[[A], Awaitable[B]], items: Sequence[A]) -> list[B]:
    """The results of `work` for each item, with only a few running at a time: others use the reader too."""
    slots = asyncio.Semaphore(_CONCURRENT_READS)

    async def run(item: A) -> B:
        async with slots:
            return await work(item)

    return list(await asyncio.gather(*map(run, items)))
