"""Saved views on the list of issues: saved, renamed and removed by forms."""

from urllib.parse import urlencode

from aiohttp import web

from dashboard.api.operation import find_project
from dashboard.auth import form
from dashboard.inputs import read_view
from dashboard.pages.asked import Asked
from dashboard.parts import state_of
from dashboard.saved_views import add, change, remove
from dashboard.wire import redirect
from schemas.projects import Project, SavedView


def text_to_save(asked: Asked) -> str:
    """What a view of this list would ask."""
    return asked.text if asked.environment or asked.state else asked.query.strip()


def current_view(project: Project, asked: Asked) -> SavedView | None:
    """The view that the list shows."""
    wanted = text_to_save(asked)
    return next((view for view in project.saved_views if view.query == wanted), None)


async def save(request: web.Request) -> web.Response:
    """Save the list's query under a name."""
    state, fields = state_of(request), await form(request)
    project = find_project(state, request.match_info["project"])
    view = await add(state, project, fields.get("name", ""), fields.get("query", ""))
    return _show(project, view.query)


async def rename(request: web.Request) -> web.Response:
    """Give a view another name."""
    state, fields = state_of(request), await form(request)
    project = find_project(state, request.match_info["project"])
    view = await change(state, project, read_view(request.match_info["view"]), name=fields.get("name", ""))
    return _show(project, view.query)


async def delete(request: web.Request) -> web.Response:
    """Remove a view; its issues stay as they are."""
    state = state_of(request)
    project = find_project(state, request.match_info["project"])
    await remove(state, project, read_view(request.match_info["view"]))
    return redirect(f"/projects/{project.id}/issues")


def _show(project: Project, query: str) -> web.Response:
    return redirect(f"/projects/{project.id}/issues?{urlencode({'query': query})}")
