"""Changes of issues as people make them: commands, their effect, and the issue as it reads afterwards.

The dashboard and the command line make the same ones. A change that is in the topic `issues` is made, and answered from its record
there. As a rule the answer waits until ClickHouse shows it, so that the next read does, too; whatever ClickHouse does meanwhile, it
takes nothing from the answer.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol, TypeVar

import msgspec

from control.issue_commands import Commands
from schemas.changes import MAX_KNOWN, MAX_RELEASE, CommandKind, IgnoreUntil, Update, UpdateData, violations
from schemas.errors import BadChange, ChangeRefused, Detail
from schemas.idempotency import request_id
from schemas.ids import hex64, issue_id, uuid7
from schemas.issues import Command, IssueRecord
from schemas.times import iso, parse_iso
from storage.client import ClickHouseError
from storage.errors import ReadError
from storage.reader.answers import Issue
from storage.reader.count_calls import ListReleases
from storage.reader.issue_calls import CountIssues, GetIssueRow, GetIssueVersions, IssueVersion, ListActivity
from storage.reader.issue_rows import IssueRow, issue_of, row_of
from storage.reader.reader import Reader

log = logging.getLogger(__name__)

VISIBLE_SECONDS: Final = 3.0
"""How long ClickHouse is waited for once a change is in the topic; a third of it for what it has counted."""
MAX_FINGERPRINTS: Final = 101
"""Of one issue: its own, and those that the processors let come."""
_LOOK_SECONDS: Final = 0.03
_AT_ONCE: Final = 4
_RECENT: Final = 500
"""Changes of an issue among which a repeated one is looked for."""
A = TypeVar("A")
B = TypeVar("B")


class CommandSender(Protocol):
    """What sends commands: `Commands`."""

    async def apply(self, commands: Sequence[Command]) -> dict[str, IssueRecord]:
        """By issue, its record once the command is in. Raises ChangesUnavailable."""
        ...


class IssueChanges:
    """Makes changes of issues. `by` says who; the same change under the same `key` of an issue is made once however often it is asked for.

    Raises NotFound, BadChange, ChangeRefused, KeyReused (the issue knows the key from another change), ChangesUnavailable and what the
    reader raises.
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
        """Status, fix, rest and assignee of one issue."""
        row = await self._reader.read(GetIssueRow(issue))
        (answer,) = await self._update(row.project_id, [row], update, by, key)
        return answer

    async def update_many(
        self, project: int, issues: Sequence[str], update: Update, *, by: str, key: str = ""
    ) -> list[Issue]:
        """The same change to many issues of a project, in their order; those that are one are changed once."""
        rows = await self._rows(issues, project)
        return await self._update(
            project, list({row.issue_id: row for row in rows}.values()), update, by, key
        )

    async def comment(self, issue: str, text: str, *, by: str, key: str = "") -> None:
        """Say something about an issue."""
        await self._apply(
            [await self._reader.read(GetIssueRow(issue))], "comment", {"text": text}, by, key, text
        )

    async def merge(self, issue: str, issues: Sequence[str], *, by: str, key: str = "") -> Issue:
        """Make other issues a part of this one."""
        row = await self._reader.read(GetIssueRow(issue))
        others = {hex64(found.issue_id): found for found in await self._rows(issues, row.project_id)}
        wanted = list(others)
        others.pop(hex64(row.issue_id), None)
        if (
            len(row.fingerprints) + sum(len(found.fingerprints) for found in others.values())
            > MAX_FINGERPRINTS
        ):
            raise BadChange([Detail("issues", f"at most {MAX_FINGERPRINTS} fingerprints make an issue")])
        records = await self._apply([row], "merge", {"issues": wanted}, by, key, sorted(issues))
        (record,) = records.values()
        if missing := sorted(set(others) - set(record.life.members)):
            raise ChangeRefused(f"another merge of {', '.join(missing)} is under way: try again")
        (answer,) = await self._answers(row.project_id, [record], dict.fromkeys(others, record.id))
        return answer

    async def unmerge(self, issue: str, fingerprints: Sequence[str], *, by: str, key: str = "") -> Issue:
        """Make fingerprints issues of their own again."""
        row = await self._reader.read(GetIssueRow(issue))
        known = {hex64(number) for number in row.fingerprints[1:]}
        wrong = [fingerprint for fingerprint in fingerprints if fingerprint not in known]
        asked = sorted(fingerprints)
        if wrong and not await self._was_unmerged(hex64(row.issue_id), key, asked):
            sentence = f"{wrong[0]} is not merged into this issue"
            raise BadChange([Detail("fingerprints", sentence)])
        records = await self._apply([row], "unmerge", {"fingerprints": asked}, by, key, asked)
        (record,) = records.values()
        alone = {hex64(issue_id(row.project_id, int(fingerprint, 16))): None for fingerprint in fingerprints}
        (answer,) = await self._answers(row.project_id, [record], alone)
        return answer

    async def _was_unmerged(self, issue: str, key: str, asked: list[str]) -> bool:
        """Whether this is asked for again, and made: the fingerprints are gone by it."""
        if not key:
            return False
        made = f"{issue}-{request_id(key, issue, 'unmerge', asked)}-unmerged"
        return any(
            one.id == made for one in (await self._reader.read(ListActivity(issue, limit=_RECENT))).activity
        )

    async def _update(
        self, project: int, rows: Sequence[IssueRow], update: Update, by: str, key: str
    ) -> list[Issue]:
        if wrong := violations(update) or self._over(update):
            raise BadChange(wrong)
        given = {name: getattr(update, name) for name in Update.__struct_fields__}
        data = UpdateData(**given, known=await self._known(project) if update.resolved_in else ())
        records = await self._apply(rows, "update", msgspec.to_builtins(data), by, key, update)
        return await self._answers(project, list(records.values()), {})

    def _over(self, update: Update) -> list[Detail]:
        """What is wrong with a rest that would end before it began."""
        until = update.ignore_until
        if isinstance(until, IgnoreUntil) and until.time and parse_iso(until.time) <= self._now_ms():
            return [Detail("ignoreUntil.time", "must lie in the future")]
        return []

    async def _rows(self, issues: Sequence[str], project: int) -> list[IssueRow]:
        """What is stored of issues that must be of the project."""
        rows = await _each(lambda issue: self._reader.read(GetIssueRow(issue)), issues)
        for issue, row in zip(issues, rows, strict=True):
            if row.project_id != project:
                raise BadChange([Detail("issues", f"{issue} is not an issue of this project")])
        return rows

    async def _known(self, project: int) -> tuple[str, ...]:
        """The project's releases, in the order in which they were first seen; of very many the newest."""
        releases = (await self._reader.read(ListReleases(project, limit=MAX_KNOWN))).releases
        ordered = sorted(releases, key=lambda one: (one.first_seen, one.release))
        return tuple(one.release[:MAX_RELEASE] for one in ordered)

    async def _apply(
        self,
        rows: Sequence[IssueRow],
        kind: CommandKind,
        data: dict[str, Any],
        by: str,
        key: str,
        asked: object,
    ) -> dict[str, IssueRecord]:
        """Send a command to each issue; `asked` is what its key stands for, without what was looked up for it."""
        at = iso(self._now_ms())
        commands = []
        for row in rows:
            issue = hex64(row.issue_id)
            name = request_id(key, issue, kind, asked) or str(uuid7())
            commands.append(Command(name, issue, str(row.project_id), kind, by, at, data))
        return await self._commands.apply(commands)

    async def _answers(
        self, project: int, records: Sequence[IssueRecord], parts: Mapping[str, str | None]
    ) -> list[Issue]:
        """The issues as their records say; `parts` are issues that were merged or taken out, with what each is a part of now."""
        now_ms = self._now_ms()
        try:
            await self._wait_visible(project, records, parts)
            async with asyncio.timeout(self._visible_seconds / 3):
                return await self._reader.read(
                    CountIssues(project, [row_of(record, now_ms) for record in records])
                )
        except (ReadError, ClickHouseError, TimeoutError) as error:
            log.warning("%d changes are made, and answered without ClickHouse: %r", len(records), error)
            return [issue_of(record, now_ms) for record in records]

    async def _wait_visible(
        self, project: int, records: Sequence[IssueRecord], parts: Mapping[str, str | None]
    ) -> None:
        """Return once ClickHouse shows the records and the parts, or when the time for it is up."""
        versions = {record.id: record.version for record in records}
        with suppress(TimeoutError):
            async with asyncio.timeout(self._visible_seconds):
                while True:
                    read = await self._reader.read(GetIssueVersions(project, [*versions, *parts]))
                    if _are_visible(read, versions, parts):
                        return
                    await asyncio.sleep(_LOOK_SECONDS)


def _are_visible(
    found: Mapping[str, IssueVersion], versions: Mapping[str, int], parts: Mapping[str, str | None]
) -> bool:
    """Whether what is read at present is not older than the versions, with every part where it belongs."""
    newest = all(issue in found and found[issue].version >= version for issue, version in versions.items())
    return newest and all(issue in found and found[issue].merged_into == to for issue, to in parts.items())


async def _each(work: Callable[[A], Awaitable[B]], items: Sequence[A]) -> list[B]:
    """The work on each item, a few at a time: the reader has other askers."""
    turns = asyncio.Semaphore(_AT_ONCE)

    async def one(item: A) -> B:
        async with turns:
            return await work(item)

    return list(await asyncio.gather(*map(one, items)))
