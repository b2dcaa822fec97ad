"""A project's settings: its name and limits, and its tokens."""

from collections.abc import Callable

from aiohttp import web

from control.project_edits import ProjectChanges, add_token, revoke_token, update
from dashboard.api.operation import find_project
from dashboard.auth.auth import form
from dashboard.dependencies import state_of
from dashboard.http.errors import not_found
from dashboard.http.wire import redirect
from dashboard.pages.onboarding import first_steps
from dashboard.pages.render import page
from schemas.errors import BadChange, Detail
from schemas.projects import Project

FIELDS = ("name", "rateLimitPerMinute", "retentionDays", "payloadRetentionDays", "lenientSdks")


async def show(request: web.Request) -> web.Response:
    """The settings as they are."""
    project = find_project(state_of(request), request.match_info["project"])
    return _page(request, project, _fields_of(project))


async def save(request: web.Request) -> web.Response:
    """Change name and limits; what is wrong is said beside its field, and nothing is changed."""
    project = find_project(state_of(request), request.match_info["project"])
    fields = await form(request)
    given = {name: fields.get(name, "").strip() for name in FIELDS}
    try:
        changes = _changes(given)
        await _edit(request, project, lambda old: update(old, changes))
    except BadChange as error:
        return _page(request, project, given, error.details, status=400)
    return redirect(f"/projects/{project.id}/settings?saved=1")


async def make_token(request: web.Request) -> web.Response:
    """One more token."""
    parts = state_of(request).parts
    project = find_project(state_of(request), request.match_info["project"])
    try:
        await _edit(request, project, lambda old: add_token(old, parts.now_ms())[0])
    except BadChange as error:
        return _page(request, project, _fields_of(project), error.details, status=400)
    return redirect(f"/projects/{project.id}/settings#tokens")


async def revoke(request: web.Request) -> web.Response:
    """Refuse a token from now on."""
    parts, token = state_of(request).parts, request.match_info["token"]
    project = find_project(state_of(request), request.match_info["project"])
    if all(known.token != token for known in project.tokens):
        raise not_found("the project has no such token")
    await _edit(request, project, lambda old: revoke_token(old, token, parts.now_ms()))
    return redirect(f"/projects/{project.id}/settings#tokens")


async def _edit(request: web.Request, project: Project, change: Callable[[Project], Project]) -> None:
    if await state_of(request).parts.projects.edit(project.number, change) is None:
        raise not_found("there is no such project")


def _fields_of(project: Project) -> dict[str, str]:
    payload_days = project.payload_retention_days
    return {
        "name": project.name,
        "rateLimitPerMinute": str(project.rate_limit_per_minute),
        "retentionDays": str(project.retention_days),
        "payloadRetentionDays": "" if payload_days is None else str(payload_days),
        "lenientSdks": "\n".join(project.lenient_sdks),
    }


def _changes(fields: dict[str, str]) -> ProjectChanges:
    wrong = [
        Detail(name, "must be a whole number")
        for name in ("rateLimitPerMinute", "retentionDays", "payloadRetentionDays")
        if not (_is_number(fields[name]) or (name == "payloadRetentionDays" and not fields[name]))
    ]
    if wrong:
        raise BadChange(wrong)
    payload_days = fields["payloadRetentionDays"]
    return ProjectChanges(
        name=fields["name"],
        rate_limit_per_minute=int(fields["rateLimitPerMinute"]),
        retention_days=int(fields["retentionDays"]),
        payload_retention_days=int(payload_days) if payload_days else None,
        lenient_sdks=tuple(fields["lenientSdks"].split()),
    )


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 9


def _page(
    request: web.Request,
    project: Project,
    fields: dict[str, str],
    wrong: list[Detail] | None = None,
    status: int = 200,
) -> web.Response:
    return page(
        request,
        "settings.html",
        status,
        project=project,
        active="settings",
        fields=fields,
        wrong={detail.field.partition("[")[0]: detail.message for detail in wrong or []},
        saved="saved" in request.query and not wrong,
        **first_steps(request, project),
    )
