"""A project's settings: name, limits and tokens."""

from typing import Final

from aiohttp import web

from control.project_edits import Owner, ProjectChanges, add_token, revoke_token, update
from dashboard.auth.auth import read_form
from dashboard.dependencies import state_of
from dashboard.http.http_errors import not_found
from dashboard.http.responses import redirect
from dashboard.pages.onboarding import first_steps
from dashboard.pages.render import page
from dashboard.requested_project import edit_project, project_of
from schemas.errors import BadChange, Detail
from schemas.projects import Project

FIELDS = (
    "name",
    "rateLimitPerMinute",
    "retentionDays",
    "payloadRetentionDays",
    "lenientSdks",
    "owners",
    "linkTemplate",
)
_OWNED_BY: Final = "=>"
"""Between a query and its owner."""


async def show_settings(request: web.Request) -> web.Response:
    """The current settings."""
    project = project_of(request)
    return _page(request, project, _fields_of(project))


async def save_settings(request: web.Request) -> web.Response:
    """Change name and limits, or show errors next to their fields and change nothing."""
    project, form = project_of(request), await read_form(request)
    fields = {name: form.get(name, "").strip() for name in FIELDS}
    try:
        changes = _changes(fields)
        await edit_project(request, lambda old: update(old, changes))
    except BadChange as error:
        return _page(request, project, fields, error.details, status=400)
    return redirect(f"/projects/{project.id}/settings?saved=1")


async def create_token(request: web.Request) -> web.Response:
    """Create another token."""
    project, now_ms = project_of(request), state_of(request).dependencies.now_ms()
    try:
        await edit_project(request, lambda old: add_token(old, now_ms))
    except BadChange as error:
        return _page(request, project, _fields_of(project), error.details, status=400)
    return redirect(f"/projects/{project.id}/settings#tokens")


async def revoke_project_token(request: web.Request) -> web.Response:
    """Revoke a token."""
    project, token = project_of(request), request.match_info["token"]
    if all(known.token != token for known in project.tokens):
        raise not_found("not a token of this project")
    now_ms = state_of(request).dependencies.now_ms()
    await edit_project(request, lambda old: revoke_token(old, token, now_ms))
    return redirect(f"/projects/{project.id}/settings#tokens")


def _fields_of(project: Project) -> dict[str, str]:
    payload_days = project.payload_retention_days
    return {
        "name": project.name,
        "rateLimitPerMinute": str(project.rate_limit_per_minute),
        "retentionDays": str(project.retention_days),
        "payloadRetentionDays": "" if payload_days is None else str(payload_days),
        "lenientSdks": "\n".join(project.lenient_sdks),
        "owners": "\n".join(f"{owner.match} {_OWNED_BY} {owner.assignee}" for owner in project.owners),
        "linkTemplate": project.link_template,
    }


def _changes(fields: dict[str, str]) -> ProjectChanges:
    details = [
        Detail(name, "must be a whole number")
        for name in ("rateLimitPerMinute", "retentionDays", "payloadRetentionDays")
        if not (_is_number(fields[name]) or (name == "payloadRetentionDays" and not fields[name]))
    ]
    if details:
        raise BadChange(details)
    payload_days = fields["payloadRetentionDays"]
    return ProjectChanges(
        name=fields["name"],
        rate_limit_per_minute=int(fields["rateLimitPerMinute"]),
        retention_days=int(fields["retentionDays"]),
        payload_retention_days=int(payload_days) if payload_days else None,
        lenient_sdks=tuple(fields["lenientSdks"].split()),
        owners=tuple(_owner(line) for line in fields["owners"].splitlines() if line.strip()),
        link_template=fields["linkTemplate"],
    )


def _owner(line: str) -> Owner:
    """An owner by its line. One without a name is refused later."""
    match, given, assignee = line.rpartition(_OWNED_BY)
    return Owner(match.strip(), assignee.strip() if given else "")


def _message(detail: Detail) -> str:
    """The text of an error; of a field with a line for each entry it says which."""
    number = detail.field.partition("[")[2].partition("]")[0]
    return f"Entry {int(number) + 1}: {detail.message}" if number else detail.message


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 9


def _page(
    request: web.Request,
    project: Project,
    fields: dict[str, str],
    details: list[Detail] | None = None,
    status: int = 200,
) -> web.Response:
    return page(
        request,
        "settings.html",
        status,
        project=project,
        active="settings",
        fields=fields,
        errors={detail.field.partition("[")[0]: _message(detail) for detail in details or []},
        saved="saved" in request.query and not details,
        **first_steps(request, project),
    )
