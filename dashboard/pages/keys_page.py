"""The secret keys of programs: a list, a form for another one, and its secret once."""

from aiohttp import web

from control.key_edits import SCOPES, NewKey, add_key, revoke_key
from dashboard.auth.auth import IDENTITY, read_form
from dashboard.dependencies import state_of
from dashboard.http.responses import redirect
from dashboard.pages.render import page
from dashboard.requested_project import edit_project, project_of
from schemas.ids import new_secret_key
from schemas.times import iso


async def show_keys(request: web.Request) -> web.Response:
    """The keys, and an empty form."""
    return _page(request)


async def create_key(request: web.Request) -> web.Response:
    """Create a key and show its secret."""
    form, secret = await read_form(request), new_secret_key()
    by, now_ms = request[IDENTITY].name, state_of(request).dependencies.now_ms()
    scopes = tuple(scope for scope in SCOPES if scope in form)
    new = NewKey(form.get("name", ""), scopes, _days(form.get("expiresInDays", "").strip()))
    await edit_project(request, lambda old: add_key(old, new, secret, by, now_ms))
    return _page(request, secret)


async def revoke(request: web.Request) -> web.Response:
    """Revoke a key."""
    key, now_ms = request.match_info["apiKey"], state_of(request).dependencies.now_ms()
    await edit_project(request, lambda old: revoke_key(old, key, now_ms))
    return redirect(request.path.partition(f"/{key}/")[0])


def _days(text: str) -> int | None:
    """The number of days; 0, which is refused, for any other text."""
    return (int(text[:9]) if text.isdecimal() else 0) if text else None


def _page(request: web.Request, secret: str = "") -> web.Response:
    project, dependencies = project_of(request), state_of(request).dependencies
    return page(
        request,
        "keys.html",
        project=project if "project" in request.match_info else None,
        active="settings",
        keys=project.keys,
        last_used=dependencies.projects.registry.last_used,
        now=iso(dependencies.now_ms()),
        scopes=SCOPES,
        secret=secret,
    )
