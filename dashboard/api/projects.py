"""Projects and their tokens: read, created and changed."""

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from control.project_edits import (
    Days,
    Name,
    Patterns,
    ProjectChanges,
    RateLimit,
    add_token,
    create,
    revoke_token,
    update,
)
from dashboard.api.operation import Call, NoInput, Operation
from dashboard.http.errors import HttpError, not_found
from schemas.errors import WireError
from schemas.projects import Project, Token


class TokenView(Struct, frozen=True, rename="camel"):
    """A project token; `revokedAt` is null while it works."""

    token: str
    created_at: str
    revoked_at: str | None


class ProjectView(Struct, frozen=True, rename="camel"):
    """A project as the API shows it."""

    id: str
    name: str
    created_at: str
    tokens: list[TokenView]
    rate_limit_per_minute: int
    retention_days: int
    payload_retention_days: int | None
    lenient_sdks: list[str]


class ProjectWithToken(ProjectView, frozen=True, rename="camel"):
    """A project and the token that was just made."""

    token: str


class ProjectList(Struct, frozen=True):
    """All projects, in the order of creation."""

    projects: list[ProjectView]


class NewProject(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What a new project is given; it gets one token."""

    name: Name
    rate_limit_per_minute: RateLimit | None = None
    retention_days: Days | None = None
    lenient_sdks: Patterns = ()


TokenPath = Annotated[str, Meta(max_length=100)]


def view(project: Project) -> ProjectView:
    """A project as the API shows it."""
    return msgspec.convert(project, ProjectView, from_attributes=True)


def _view_with(project: Project, token: Token) -> ProjectWithToken:
    shown = msgspec.structs.asdict(view(project))
    return ProjectWithToken(**shown, token=token.token)


async def _list(call: Call[NoInput, NoInput]) -> ProjectList:
    projects = call.state.parts.projects
    if not projects.loaded:
        raise HttpError(WireError.UNAVAILABLE, headers={"Retry-After": "2"})
    return ProjectList([view(project) for project in projects.all()])


async def _create(call: Call[NoInput, NewProject]) -> ProjectWithToken:
    parts, body = call.state.parts, call.body
    project = create(
        body.name,
        rate_limit=body.rate_limit_per_minute,
        retention_days=body.retention_days,
        lenient_sdks=body.lenient_sdks,
        now_ms=parts.now_ms(),
        request=call.named(),
    )
    written = await parts.projects.write(project)
    return _view_with(written, written.tokens[0])


async def _get(call: Call[NoInput, NoInput]) -> ProjectView:
    return view(call.project())


async def _update(call: Call[NoInput, ProjectChanges]) -> ProjectView:
    return view(await call.edit(lambda old: update(old, call.body)))


async def _add_token(call: Call[NoInput, NoInput]) -> ProjectWithToken:
    parts, request = call.state.parts, call.named(call.project().id)
    made: list[Token] = []

    def change(old: Project) -> Project:
        changed, token = add_token(old, parts.now_ms(), request)
        made.append(token)
        return changed

    changed = await parts.projects.edit(call.project().number, change)
    return _view_with(_still_there(changed), made[-1])


async def _revoke_token(call: Call[NoInput, NoInput]) -> ProjectView:
    parts, project, token = call.state.parts, call.project(), call.path("token")
    if all(known.token != token for known in project.tokens):
        raise not_found("the project has no such token")
    return view(await call.edit(lambda old: revoke_token(old, token, parts.now_ms())))


def _still_there(project: Project | None) -> Project:
    if project is None:
        raise not_found("there is no such project")
    return project


OPERATIONS = (
    Operation(method="GET", path="/projects", summary="All projects", handler=_list, answer=ProjectList),
    Operation(
        method="POST",
        path="/projects",
        summary="Create a project with one token",
        handler=_create,
        body=NewProject,
        answer=ProjectWithToken,
        status=201,
    ),
    Operation(
        method="GET",
        path="/projects/{project}",
        summary="A project",
        handler=_get,
        answer=ProjectView,
    ),
    Operation(
        method="PATCH",
        path="/projects/{project}",
        summary="Change a project; what is left out stays as it is",
        handler=_update,
        body=ProjectChanges,
        answer=ProjectView,
    ),
    Operation(
        method="POST",
        path="/projects/{project}/tokens",
        summary="Make one more token",
        handler=_add_token,
        answer=ProjectWithToken,
        status=201,
    ),
    Operation(
        method="DELETE",
        path="/projects/{project}/tokens/{token}",
        summary="Revoke a token: events sent with it are refused from now on",
        handler=_revoke_token,
        answer=ProjectView,
    ),
)
