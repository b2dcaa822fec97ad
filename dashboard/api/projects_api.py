"""Projects and their tokens."""

import msgspec
from msgspec import Struct

from control.project_edits import (
    Days,
    Name,
    Patterns,
    ProjectChanges,
    RateLimit,
    add_token,
    create,
    revoke_token,
    token_of,
    update,
)
from dashboard.api.operation import Call, NoInput, operation
from dashboard.auth.access import Role
from dashboard.http.http_errors import not_found, unavailable
from schemas.projects import OwnerRule, Project, Token


class TokenView(Struct, frozen=True, rename="camel"):
    """A project token; `revokedAt` is null while it is valid."""

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
    owners: list[OwnerRule]
    link_template: str


class ProjectWithToken(ProjectView, frozen=True, rename="camel"):
    """A project and its newly created token."""

    token: str


class ProjectList(Struct, frozen=True):
    """The projects that the person may see, in order of creation."""

    projects: list[ProjectView]


class NewProject(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Fields of a new project; it gets one token."""

    name: Name
    rate_limit_per_minute: RateLimit | None = None
    retention_days: Days | None = None
    lenient_sdks: Patterns = ()


def view(project: Project) -> ProjectView:
    """A project as the API shows it."""
    return msgspec.convert(project, ProjectView, from_attributes=True)


def _view_with(project: Project, token: Token) -> ProjectWithToken:
    return ProjectWithToken(**msgspec.structs.asdict(view(project)), token=token.token)


@operation("GET", "/projects", Role.NONE)
async def _list(call: Call[NoInput, NoInput]) -> ProjectList:
    """The projects that you may see."""
    if not call.state.dependencies.projects.loaded:
        raise unavailable("projects are not loaded yet")
    return ProjectList(list(map(view, call.visible_projects())))


@operation("POST", "/projects", Role.ADMIN, status=201)
async def _create(call: Call[NoInput, NewProject]) -> ProjectWithToken:
    """Create a project with one token."""
    dependencies, body = call.state.dependencies, call.body
    project = create(
        body.name,
        rate_limit=body.rate_limit_per_minute,
        retention_days=body.retention_days,
        lenient_sdks=body.lenient_sdks,
        now_ms=dependencies.now_ms(),
        request=call.request_name(),
    )
    written = await dependencies.projects.write(project, call.author)
    return _view_with(written, written.tokens[0])


@operation("GET", "/projects/{project}", Role.VIEWER)
async def _get(call: Call[NoInput, NoInput]) -> ProjectView:
    """A project."""
    return view(call.project())


@operation("PATCH", "/projects/{project}", Role.ADMIN)
async def _update(call: Call[NoInput, ProjectChanges]) -> ProjectView:
    """Change a project; omitted fields stay unchanged."""
    return view(await call.edit(lambda old: update(old, call.body)))


@operation("POST", "/projects/{project}/tokens", Role.ADMIN, status=201)
async def _add_token(call: Call[NoInput, NoInput]) -> ProjectWithToken:
    """Create another token."""
    request, now_ms = call.request_name(call.project().id), call.state.dependencies.now_ms()
    project = await call.edit(lambda old: add_token(old, now_ms, request))
    return _view_with(project, token_of(project, request))


@operation("DELETE", "/projects/{project}/tokens/{token}", Role.ADMIN)
async def _revoke_token(call: Call[NoInput, NoInput]) -> ProjectView:
    """Revoke a token: events sent with it are refused."""
    token, now_ms = call.path("token"), call.state.dependencies.now_ms()
    if all(known.token != token for known in call.project().tokens):
        raise not_found("not a token of this project")
    return view(await call.edit(lambda old: revoke_token(old, token, now_ms)))


OPERATIONS = (_list, _create, _get, _update, _add_token, _revoke_token)
