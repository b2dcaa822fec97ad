"""`svc projects` and `svc keys`: changes on the topic `projects`, which all processes follow."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeVar

import click
import msgspec
from rich.box import SIMPLE
from rich.markup import escape
from rich.table import Column, Table

from cli.command_groups import NearestGroup
from cli.console import console, current_user, json_option, output, servers_of
from cli.failures import fail, reported
from cli.workspace import Workspace
from control import project_edits
from control.key_edits import SCOPES, KeyView, NewKey, add_key, key_views, revoke_key
from control.project_store import ProjectStore
from schemas.change_records import Author
from schemas.ids import new_secret_key
from schemas.projects import Project
from schemas.settings import KafkaSettings, MigrateSettings

T = TypeVar("T")


class CreatedProject(msgspec.Struct, frozen=True):
    """The JSON output of `create` and `token add` (contract, section 1)."""

    id: str
    name: str
    token: str


async def create_project(settings: KafkaSettings, name: str, **options: Any) -> CreatedProject:
    """Create a project and return it with its token once Kafka has its record.

    `options` are those of `project_edits.create`. Raises BadChange and ProjectsUnavailable.
    """
    project = project_edits.create(name, now_ms=_now_ms(), **options)
    async with ProjectStore(settings) as store:
        await store.write(project, _author())
    return CreatedProject(project.id, project.name, project.tokens[0].token)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _author() -> Author:
    return Author(current_user(), "command")


def _run(workspace: Workspace, work: Callable[[KafkaSettings], Coroutine[Any, Any, T]]) -> T:
    settings = servers_of(workspace, MigrateSettings)
    with reported(settings):
        return asyncio.run(work(settings))


def _edit(workspace: Workspace, wanted: str | None, change: Callable[[Project], Project]) -> Project:
    async def work(settings: KafkaSettings) -> Project | None:
        async with ProjectStore(settings) as store:
            return await store.edit(find_project(store, wanted).number, change, _author())

    project = _run(workspace, work)
    if project is None:
        fail(f"there is no project {wanted}")
    return project


def find_project(store: ProjectStore, wanted: str | None) -> Project:
    """A project by its id or its name; for None the record of all projects.

    Ends the program if there is none, or more than one.
    """
    if wanted is None:
        return store.registry.all_projects
    named = [project for project in store.all() if wanted in {project.id, project.name}]
    by_id = [project for project in named if project.id == wanted]
    if not named:
        fail(f"there is no project {wanted}")
    if len(named) > 1 and not by_id:
        fail(f"{len(named)} projects are called {wanted}: name one by its id")
    return (by_id or named)[0]


async def project_number(settings: KafkaSettings, wanted: str) -> int:
    """A project's number by its name, or by its id, which is taken as it is."""
    if wanted.isdecimal():
        return int(wanted)
    async with ProjectStore(settings) as store:
        return find_project(store, wanted).number


@click.group(cls=NearestGroup)
def projects() -> None:
    """Create and change projects and their tokens."""


@projects.command()
@click.argument("name")
@click.option("--rate-limit", type=int, help="Requests per minute and token.")
@click.option("--retention-days", type=int, help="Days for which events are stored.")
@click.option(
    "--lenient-sdk",
    "lenient_sdks",
    multiple=True,
    metavar="PATTERN",
    help="SDKs that are validated leniently; `*` for all.",
)
@click.option("--json", "as_json", is_flag=True, help='Print {"id", "name", "token"}.')
@click.pass_obj
def create(workspace: Workspace, /, name: str, as_json: bool, **options: Any) -> None:
    """Create a project and print its token."""
    project = _run(workspace, lambda settings: create_project(settings, name, **options))
    text = f"project [bold]{escape(project.name)}[/] has the id {project.id} and the token\n{project.token}"
    output(as_json, project, lambda: console().print(text))


@projects.command(name="list")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
@click.pass_obj
def list_projects(workspace: Workspace, as_json: bool) -> None:
    """List projects."""

    async def work(settings: KafkaSettings) -> list[Project]:
        async with ProjectStore(settings) as store:
            return store.all()

    rows = _run(workspace, work)
    output(as_json, rows, lambda: print_projects(rows))


def print_projects(rows: list[Project]) -> None:
    """A table of projects."""
    heads = ("id", "name", "created", "tokens", "requests/min", "days", "lenient SDKs")
    table = Table(
        *(Column(head, no_wrap=head != "lenient SDKs") for head in heads), box=SIMPLE, pad_edge=False
    )
    for p in rows:
        live = sum(t.revoked_at is None for t in p.tokens)
        cells = (
            p.id,
            p.name,
            p.created_at[:10],
            live,
            p.rate_limit_per_minute,
            p.retention_days,
            " ".join(p.lenient_sdks),
        )
        table.add_row(*(escape(str(cell)) for cell in cells))
    console().print(table)


@projects.command()
@click.argument("project")
@click.option("--name", help="New name.")
@click.option("--rate-limit", "rate_limit_per_minute", type=int, help="Requests per minute and token.")
@click.option("--retention-days", type=int, help="Days for which new events are stored.")
@click.option(
    "--lenient-sdk",
    "lenient_sdks",
    multiple=True,
    metavar="PATTERN",
    help="Replaces the patterns; '' for none.",
)
@click.option(
    "--owner",
    "owners",
    nargs=2,
    multiple=True,
    metavar="QUERY NAME",
    help="Replaces the owners: assigns a new issue whose first event fits the query to the name; '' '' for none.",
)
@click.option(
    "--link-template",
    metavar="URL",
    help="Links frames to the source: https://git.example/{release}/{file}#L{line}; '' for none.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the project as JSON.")
@click.pass_obj
def update(workspace: Workspace, /, project: str, as_json: bool, **given: Any) -> None:
    """Change a project, given by id or name."""
    if all(value in {None, ()} for value in given.values()):
        raise click.UsageError("nothing to change: give at least one option")
    changed = _edit(workspace, project, lambda p: project_edits.update(p, _changes(given)))
    text = f"project {changed.id} ([bold]{escape(changed.name)}[/]) is changed"
    output(as_json, changed, lambda: console().print(text))


def _changes(given: Mapping[str, Any]) -> project_edits.ProjectChanges:
    changes = {field: value for field, value in given.items() if value is not None and value != ()}
    if "lenient_sdks" in changes:
        changes["lenient_sdks"] = tuple(pattern for pattern in changes["lenient_sdks"] if pattern)
    if "owners" in changes:
        changes["owners"] = tuple(project_edits.Owner(*pair) for pair in changes["owners"] if pair[1])
    return project_edits.ProjectChanges(**changes)


@projects.group()
def token() -> None:
    """Add and revoke tokens."""


@token.command(name="add")
@click.argument("project")
@click.option("--json", "as_json", is_flag=True, help='Print {"id", "name", "token"}.')
@click.pass_obj
def add_token(workspace: Workspace, project: str, as_json: bool) -> None:
    """Add a token to a project and print it."""
    changed = _edit(workspace, project, lambda p: project_edits.add_token(p, _now_ms()))
    new = CreatedProject(changed.id, changed.name, changed.tokens[-1].token)
    output(as_json, new, lambda: click.echo(new.token))


@token.command(name="revoke")
@click.argument("project")
@click.argument("token")
@click.pass_obj
def revoke_token(workspace: Workspace, project: str, token: str) -> None:
    """Revoke a token."""
    changed = _edit(workspace, project, lambda p: project_edits.revoke_token(p, token, _now_ms()))
    click.echo(f"project {changed.id} no longer accepts {token}")


of_project = click.option("--project", help="Id or name; without it the keys for all projects.")


@click.group(cls=NearestGroup)
def keys() -> None:
    """Create, list and revoke the keys of programs that use the read API."""


@keys.command(name="create")
@click.argument("name")
@of_project
@click.option("--scope", "scopes", multiple=True, required=True, type=click.Choice(SCOPES))
@click.option("--expires-in-days", type=int, help="Without it the key doesn't expire.")
@click.option("--by", default=current_user, help="Who creates it; by default the current user.")
@click.pass_obj
def create_key(workspace: Workspace, /, project: str | None, by: str, **given: Any) -> None:
    """Create a key and print it; it can't be shown again."""
    secret, new = new_secret_key(), NewKey(**given)
    _edit(workspace, project, lambda old: add_key(old, new, secret, by, _now_ms()))
    click.echo(secret)


@keys.command(name="list")
@of_project
@json_option
@click.pass_obj
def list_keys(workspace: Workspace, project: str | None, as_json: bool) -> None:
    """List keys, without their secrets."""

    async def work(settings: KafkaSettings) -> list[KeyView]:
        async with ProjectStore(settings) as store:
            return key_views(find_project(store, project), store.registry.last_used)

    rows = _run(workspace, work)
    output(as_json, rows, lambda: _print_keys(rows))


def _print_keys(rows: list[KeyView]) -> None:
    heads = ("id", "name", "scopes", "created", "by", "last used", "expires", "revoked")
    table = Table(*heads, box=SIMPLE, pad_edge=False)
    for key in rows:
        days = (key.created_at, key.last_used, key.expires_at, key.revoked_at)
        created, used, expires, revoked = ((day or "")[:10] for day in days)
        cells = (key.id, key.name, " ".join(key.scopes), created, key.created_by, used, expires, revoked)
        table.add_row(*map(escape, cells))
    console().print(table)


@keys.command(name="revoke")
@click.argument("key")
@of_project
@click.pass_obj
def revoke(workspace: Workspace, key: str, project: str | None) -> None:
    """Revoke a key by its id: every dashboard refuses it within a second."""
    _edit(workspace, project, lambda old: revoke_key(old, key, _now_ms()))
