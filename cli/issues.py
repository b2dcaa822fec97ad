"""`svc issues`: lists and changes issues, through the same commands as the dashboard."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

import click
import msgspec
from rich.box import SIMPLE
from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from cli.command_groups import NearestGroup
from cli.console import NO_CLICKHOUSE, console, current_user, json_option, output, servers_of
from cli.failures import fail, reported
from cli.issue_text import lines
from cli.projects import find_project
from cli.topics import end_iso
from cli.workspace import Workspace
from control.issue_changes import IssueChanges, set_discarded
from control.issue_commands import Commands
from control.project_store import ProjectStore
from dashboard.http.violations import detail_of
from dashboard.view.text import flat, title
from query.keys import tag_keys
from query.parse import parse
from schemas.change_records import Author
from schemas.changes import NEXT, CommentData, IgnoreUntil, Update, is_issue
from schemas.read_api import ActivityPage, Issue, IssuePage, KeyWarning, Similar
from schemas.settings import MigrateSettings
from storage.read.counts.completion import FindUnknownKeys
from storage.read.execute import Limits
from storage.read.issues.issue_calls import GetIssue, ListActivity
from storage.read.issues.issue_list import SORTS, ListIssues
from storage.read.issues.similar import ListSimilarIssues
from storage.read.reader import Reader
from storage.shards import reader_urls

T = TypeVar("T")
S = TypeVar("S", bound=msgspec.Struct)
DEADLINE_SECONDS = 10.0
CHANGE_LIMITS = Limits(seconds=2, grace_seconds=1)
"""A change doesn't wait longer for ClickHouse, and the command ends with the last statement."""


_ROOM: Final = 110
"""Columns from which a title has room next to the figures."""


class IssueId(click.ParamType):
    """Sixteen hexadecimal digits."""

    name = "issue"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The id in lower case."""
        text = str(value).lower()
        if not is_issue(text):
            self.fail(f"{value} is not an id of sixteen hexadecimal digits", param, ctx)
        return text


ISSUE = IssueId()


_MOST_LISTED = 500
by_option = click.option(
    "--by", default=current_user, help="Who makes the change; by default the current user."
)
key_option = click.option(
    "--key", default="", help="Idempotency key: a change with the same key is made once."
)


def change_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options of a change whose result is printed."""
    return by_option(key_option(json_option(click.pass_obj(command))))


class IssueTools:
    """The settings and clients of one run."""

    def __init__(self, settings: MigrateSettings) -> None:
        self.settings = settings
        urls = reader_urls(settings)
        self.reader = Reader.open(urls)
        self._quick_reader = Reader.open(urls, CHANGE_LIMITS)
        self.changes = IssueChanges(self._quick_reader, Commands(settings, DEADLINE_SECONDS))

    async def close_readers(self) -> None:
        """Wait for the running calls, and close."""
        await self.reader.close()
        await self._quick_reader.close()


def _run(workspace: Workspace, work: Callable[[IssueTools], Awaitable[T]]) -> T:
    settings = servers_of(workspace, MigrateSettings)
    if not settings.reader_url:
        fail(NO_CLICKHOUSE)

    async def main() -> T:
        tools = IssueTools(settings)
        try:
            return await work(tools)
        finally:
            await tools.close_readers()

    with reported(settings):
        return asyncio.run(main())


def _checked(data: S) -> S:
    """Validate the data of a change here: the processors would reject it without an answer."""
    try:
        return msgspec.convert(msgspec.to_builtins(data), type(data))
    except msgspec.ValidationError as error:
        detail = detail_of(error, type(data))
        raise click.UsageError(f"{detail.field}: {detail.message}") from None


def _update(workspace: Workspace, issues: Iterable[str], update: Update, by: str, key: str) -> list[Issue]:
    _checked(update)

    async def work(tools: IssueTools) -> list[Issue]:
        return [await tools.changes.update(issue, update, by=by, key=key) for issue in issues]

    return _run(workspace, work)


def _print(rows: list[Issue], as_json: bool) -> None:
    output(as_json, rows, lambda: print_lines(rows, console()))


def print_lines(rows: Sequence[Issue], out: Console) -> None:
    """A line for each issue; where there is little room, two, so that the title isn't cut to a word."""
    is_narrow = out.width < _ROOM
    table = Table(
        Column("id", no_wrap=True, min_width=16),
        Column("state", no_wrap=True, min_width=9),
        Column("issue", no_wrap=True, overflow="ellipsis", ratio=1),
        Column("events", justify="right", no_wrap=True, min_width=6),
        Column("users", justify="right", no_wrap=True, min_width=5),
        Column("last seen", no_wrap=True, min_width=11),
        box=SIMPLE,
        pad_edge=False,
        expand=True,
    )
    for row in rows:
        state = "regressed" if row.regressed else row.status
        name = flat(title(row), 200)
        seen = row.last_seen[5:16].replace("T", " ")
        figures = (str(row.total_events), str(row.total_users), seen)
        if is_narrow:
            out.print(escape(name), no_wrap=True, overflow="ellipsis", soft_wrap=False)
            out.print(f"  {row.id}  {state:<9} {figures[0]:>9} events {figures[1]:>7} users  {seen}")
        else:
            table.add_row(*map(escape, (row.id, state, name, *figures)))
    if not is_narrow:
        out.print(table)


@click.group(cls=NearestGroup)
def issues() -> None:
    """List and change issues."""


@issues.command(name="list")
@click.argument("project")
@click.option("--query", default="", help="The query language of the dashboard, such as `is:open`.")
@click.option(
    "--sort",
    type=click.Choice(SORTS),
    default="lastSeen",
    show_default=True,
)
@click.option("--limit", type=click.IntRange(1, _MOST_LISTED), default=50, show_default=True)
@json_option
@click.pass_obj
def list_issues(workspace: Workspace, /, project: str, as_json: bool, **parameters: Any) -> None:
    """List a project's issues of the last 14 days; PROJECT is its id or name."""

    async def work(tools: IssueTools) -> tuple[IssuePage, list[KeyWarning]]:
        number = await _project(tools.settings, project)
        page = await tools.reader.read(ListIssues(number, **parameters))
        return page, await tools.reader.read(FindUnknownKeys(number, tag_keys(parse(parameters["query"]))))

    page, warnings = _run(workspace, work)
    for warning in warnings:
        hint = f"; did you mean {' or '.join(warning.nearest)}?" if warning.nearest else ""
        click.echo(f"svc: no event of this project has the tag {warning.key}{hint}", err=True)
    _print(page.issues, as_json)
    if page.next_cursor:
        more = (
            "a narrower --query finds others" if parameters["limit"] == _MOST_LISTED else "--limit shows more"
        )
        click.echo(f"svc: these are the first {len(page.issues)}, and there are more: {more}", err=True)


@issues.command()
@click.argument("issue", type=ISSUE)
@json_option
@click.pass_obj
def show(workspace: Workspace, issue: str, as_json: bool) -> None:
    """Show an issue and its newest changes."""

    async def work(tools: IssueTools) -> tuple[Issue, ActivityPage]:
        return await asyncio.gather(
            tools.reader.read(GetIssue(issue)), tools.reader.read(ListActivity(issue, limit=20))
        )

    row, page = _run(workspace, work)
    output(
        as_json,
        msgspec.to_builtins(row) | {"activity": page.activity},
        lambda: click.echo("\n".join(lines(row, page.activity))),
    )


@issues.command()
@click.argument("issues", type=ISSUE, nargs=-1, required=True)
@click.option("--in", "release", help="The release with the fix.")
@click.option("--next", "in_next", is_flag=True, help="Fixed in the release after the known ones.")
@change_options
def resolve(
    workspace: Workspace, /, issues: list[str], release: str | None, in_next: bool, by: str, key: str, as_json: bool
) -> None:  # fmt: skip
    """Resolve issues: now, in a release, or in the next one."""
    if release is not None and in_next:
        raise click.UsageError("use either --in or --next")
    resolved_in = NEXT if in_next else release
    _print(_update(workspace, issues, Update(status="resolved", resolved_in=resolved_in), by, key), as_json)


@issues.command()
@click.argument("issues", type=ISSUE, nargs=-1, required=True)
@click.option("--until", "time", help="A time, ISO 8601 with an offset, or a span such as 8h, 3d.")
@click.option("--events", type=click.IntRange(1), help="Until that many more events.")
@click.option("--users", type=click.IntRange(1), help="Until that many users.")
@click.option("--escalating", is_flag=True, default=None, help="Until its rate rises far above its own past.")
@change_options
def ignore(
    workspace: Workspace, /, issues: list[str], by: str, key: str, as_json: bool, **until: Any
) -> None:
    """Ignore issues: forever, until a time, until more events or users, or until they escalate."""
    if until["time"]:
        until["time"] = end_iso(until["time"], datetime.now(UTC))
    condition = IgnoreUntil(**until) if any(value is not None for value in until.values()) else None
    _print(_update(workspace, issues, Update(status="ignored", ignore_until=condition), by, key), as_json)


@issues.command()
@click.argument("issues", type=ISSUE, nargs=-1, required=True)
@change_options
def reopen(workspace: Workspace, /, issues: list[str], by: str, key: str, as_json: bool) -> None:
    """Reopen issues."""
    _print(_update(workspace, issues, Update(status="open"), by, key), as_json)


@issues.command()
@click.argument("issue", type=ISSUE)
@click.argument("who")
@change_options
def assign(workspace: Workspace, /, issue: str, who: str, by: str, key: str, as_json: bool) -> None:
    """Assign an issue to WHO; '' removes the assignee."""
    _print(_update(workspace, [issue], Update(assignee=who or None), by, key), as_json)


@issues.command()
@click.argument("issue", type=ISSUE)
@click.argument("others", type=ISSUE, nargs=-1, required=True)
@change_options
def merge(workspace: Workspace, /, issue: str, others: list[str], by: str, key: str, as_json: bool) -> None:
    """Merge OTHERS into ISSUE."""
    row = _run(workspace, lambda tools: tools.changes.merge(issue, others, by=by, key=key))
    _print([row], as_json)


@issues.command()
@click.argument("issue", type=ISSUE)
@click.argument("fingerprints", type=ISSUE, nargs=-1, required=True)
@change_options
def unmerge(
    workspace: Workspace, /, issue: str, fingerprints: list[str], by: str, key: str, as_json: bool
) -> None:
    """Split FINGERPRINTS of ISSUE off into separate issues."""
    row = _run(workspace, lambda tools: tools.changes.unmerge(issue, fingerprints, by=by, key=key))
    _print([row], as_json)


@issues.command()
@click.argument("issue", type=ISSUE)
@click.argument("text")
@by_option
@key_option
@click.pass_obj
def comment(workspace: Workspace, /, issue: str, text: str, by: str, key: str) -> None:
    """Comment on an issue."""
    _checked(CommentData(text))
    _run(workspace, lambda tools: tools.changes.comment(issue, text, by=by, key=key))


@issues.command()
@click.argument("issue", type=ISSUE)
@click.option("--limit", type=click.IntRange(1, 50), default=10, show_default=True)
@json_option
@click.pass_obj
def similar(workspace: Workspace, /, issue: str, limit: int, as_json: bool) -> None:
    """List issues similar to ISSUE, with the reasons."""
    rows = _run(workspace, lambda tools: tools.reader.read(ListSimilarIssues(issue, limit=limit))).similar
    output(as_json, rows, lambda: _print_similar(rows))


def _print_similar(rows: Sequence[Similar]) -> None:
    table = Table(Column("id", no_wrap=True), "share", "issue", "culprit", "events", "why")
    for row in rows:
        cells = (row.id, f"{row.share:.0%}", flat(title(row), 200), row.culprit, row.total_events, row.reason)
        table.add_row(*(escape(str(cell)) for cell in cells))
    console().print(table)


@issues.command()
@click.argument("issue", type=ISSUE)
@click.option("--undo", is_flag=True, help="Store its events again.")
@by_option
@json_option
@click.pass_obj
def discard(workspace: Workspace, /, issue: str, undo: bool, by: str, as_json: bool) -> None:
    """Drop an issue's new events before they are stored, and ignore it."""

    async def work(tools: IssueTools) -> Issue:
        (row,) = await tools.changes.find([issue])
        async with ProjectStore(tools.settings) as store:
            return await set_discarded(store, tools.changes, row, not undo, Author(by, "command"))

    _print([_run(workspace, work)], as_json)


async def _project(settings: MigrateSettings, wanted: str) -> int:
    async with ProjectStore(settings) as store:
        return find_project(store, wanted).number
