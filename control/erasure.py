"""Erases a user or a project.

`storage.maintain.erase` erases from the tables. This module erases the rest: the pipeline, the issues' texts
and the project's record.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import Struct

from broker.client import name_of
from control.change_log import change_of
from control.issue_commands import Commands
from control.key_edits import revoke_key
from control.operator_tools import OperatorTools
from control.project_edits import revoke_token
from control.project_store import ProjectStore
from schemas.change_records import Author, ChangeKind
from schemas.changes import RedactData
from schemas.errors import EraseRefused
from schemas.issues import Command
from schemas.projects import Project
from schemas.settings import KafkaSettings
from schemas.times import DAY_MS, iso
from schemas.topics import Topic
from storage.errors import UnknownUser
from storage.maintain.erase import erase_project as of_project
from storage.maintain.erase import erase_user as of_user
from storage.maintain.erase.erase_project import ProjectReport
from storage.maintain.erase.erase_user import UserReport
from storage.maintain.erase.erased_issues import IssueDescription

Report = UserReport | ProjectReport
Agree = Callable[[Report, str], bool]
"""Gets the report and a question; returns whether to go on."""
_SEND_SECONDS: Final = 60.0
_LOGS: Final = (Topic.EVENTS, Topic.GROUPED, Topic.GROUPED_EVENTS, Topic.ISSUE_DELTAS, Topic.DEAD_LETTERS)
_LOGS_OF_PROJECTS: Final = (*_LOGS, Topic.ISSUE_ACTIVITY, Topic.OUTCOMES)


class Left(Struct, frozen=True):
    """A topic that still has erased records until they expire."""

    topic: str
    until: str


def find(tools: OperatorTools, wanted: str) -> tuple[int, Project | None]:
    """A project by id or name, and its record if it still has one. Raises EraseRefused and ProjectsUnavailable."""

    async def look() -> list[Project]:
        async with ProjectStore(tools.settings) as store:
            return store.all()

    named = [project for project in asyncio.run(look()) if wanted in (project.id, project.name)]
    by_id = [project for project in named if project.id == wanted]
    if by_id or len(named) == 1:
        project = (by_id or named)[0]
        return project.number, project
    if named:
        raise EraseRefused(f"{len(named)} projects are called {wanted}: name one by its id")
    if not (wanted.isascii() and wanted.isdecimal() and int(wanted) < 1 << 32):
        raise EraseRefused(f"there is no project {wanted}")
    return int(wanted), None


def erase_user(tools: OperatorTools, project: int, user: str, agree: Agree) -> UserReport:
    """Erase a user's events from the tables.

    Raises EraseRefused, PipelineNotIdle, ProjectsUnavailable, ChangesUnavailable, KafkaError and ClickHouseError.
    """
    if of_project.begun(tools.servers, project):
        raise EraseRefused(
            f"project {project} is being erased as a whole: `svc erase --project {project}` finishes it"
        )
    try:
        report = of_user.preview(tools.servers, project, user)
        question = f"Erase {report.events:,} events of this user from project {project}?"
        if not report.events:
            question = f"Finish an interrupted erasure of this user in project {project}?"
        if not agree(report, question):
            return report
        _record(tools, "userErased", project)
        groups = _only(tools.groups, Topic.EVENTS, Topic.GROUPED)
        tools.settle(groups)
        return of_user.erase_user(
            tools.servers,
            project,
            user,
            tools.by,
            # The processors too: an event is stored before its increment, which names it, is published.
            lambda: tools.settle(groups),
            lambda erasure, issues: _redescribe(tools, project, erasure, issues),
            tools.say,
        )
    except UnknownUser:
        raise EraseRefused(f"project {project} has no event of this user, and none was erased") from None


def erase_project(tools: OperatorTools, project: int, record: Project | None, agree: Agree) -> ProjectReport:
    """Erase a project from the tables and the topic `projects`. Raises as `erase_user`."""
    report = of_project.preview(tools.servers, project)
    if record is None and not report.rows and not of_project.begun(tools.servers, project):
        raise EraseRefused(f"there is no project {project}")
    name = f"{record.name} ({project})" if record else str(project)
    if not agree(report, f"Erase project {name} with everything that belongs to it, for good?"):
        return report
    _record(tools, "projectErased", project)
    if record is not None:
        tools.say("revoking its tokens and keys")
        asyncio.run(_revoke(tools, project))
    tools.settle()
    issues = of_project.issues(tools.servers, project)
    if issues:
        tools.say("redacting its issues")
        redaction = RedactData(wholly=True)
        send_redactions(tools, project, f"erase-{project}", [(issue, redaction) for issue in issues])
        tools.settle()

    def remove_record() -> None:
        if record is not None:
            asyncio.run(_remove(tools.settings, project))

    return of_project.erase_project(tools.servers, project, tools.by, remove_record, tools.say)


def left(report: Report, settings: KafkaSettings) -> list[Left]:
    """The topics that may still have the erased records, and until when."""
    logs = _LOGS if isinstance(report, UserReport) else _LOGS_OF_PROJECTS
    now = time.time_ns() // 1_000_000
    return [Left(name_of(settings, topic), iso(now + topic.days * DAY_MS)) for topic in logs]


def _only(groups: dict[str, list[Topic]], *wanted: Topic) -> dict[str, list[Topic]]:
    """The groups that read any of these topics, with only these topics."""
    chosen = {group: [topic for topic in topics if topic in wanted] for group, topics in groups.items()}
    return {group: topics for group, topics in chosen.items() if topics}


def _redescribe(tools: OperatorTools, project: int, erasure: str, issues: list[IssueDescription]) -> None:
    changes = [
        (issue.issue, RedactData(issue.erased, issue.newest, issue.message, issue.newest_ms))
        for issue in issues
    ]
    send_redactions(tools, project, f"erase-{erasure}", changes)


def send_redactions(
    tools: OperatorTools, project: int, name: str, changes: list[tuple[str, RedactData]]
) -> None:
    """Send redact commands to the processors; `name` makes a repetition idempotent."""
    at = iso(time.time_ns() // 1_000_000)
    commands = [
        Command(
            id=name,
            issue=issue,
            project_id=str(project),
            kind="redact",
            by=tools.by,
            at=at,
            data=msgspec.to_builtins(data),
        )
        for issue, data in changes
    ]
    if commands:
        asyncio.run(Commands(tools.settings, _SEND_SECONDS).send(commands))


def _record(tools: OperatorTools, kind: ChangeKind, project: int) -> None:
    """Record the erasure, without who or what is erased."""

    async def record() -> None:
        async with ProjectStore(tools.settings) as store:
            now_ms = time.time_ns() // 1_000_000
            await store.record(change_of(kind, _author(tools), now_ms, str(project)))

    asyncio.run(record())


def _author(tools: OperatorTools) -> Author:
    return Author(tools.by, "command")


async def _revoke(tools: OperatorTools, project: int) -> None:
    now = time.time_ns() // 1_000_000

    def change(known: Project) -> Project:
        for token in known.tokens:
            known = revoke_token(known, token.token, now)
        for key in known.keys:
            known = revoke_key(known, key.id, now)
        return known

    async with ProjectStore(tools.settings) as store:
        await store.edit(project, change, _author(tools))


async def _remove(settings: KafkaSettings, project: int) -> None:
    async with ProjectStore(settings) as store:
        await store.remove(project)
