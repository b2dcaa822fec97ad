"""Saved views on the list of issues: saved, renamed and removed by forms."""

from urllib.parse import urlencode

from aiohttp import web

from control.project_edits import ViewChanges
from dashboard.api.operation import find_project
from dashboard.auth.auth import form
from dashboard.dependencies import state_of
from dashboard.http.inputs import read_view
from dashboard.http.wire import redirect
from dashboard.pages.list_parameters import ListParameters
from dashboard.pages.time_ranges import span_fields
from dashboard.saved_views import add, change, remove
from schemas.projects import Project, SavedView


def text_to_save(asked: ListParameters) -> str:
    """What a view of this list would ask."""
    return asked.text if asked.environment or asked.state else asked.query.strip()


def current_view(project: Project, asked: ListParameters) -> SavedView | None:
    """The view that the list shows."""
    wanted = (text_to_save(asked), asked.sort, asked.span.text)
    return next((view for view in project.saved_views if (view.query, view.sort, view.range) == wanted), None)


def view_link(view: SavedView) -> str:
    """The part of an address after `?` for the list of a view."""
    fields = {"query": view.query, "sort": "" if view.sort == "lastSeen" else view.sort}
    return "?" + urlencode(
        {name: value for name, value in (fields | span_fields(view.range)).items() if value}
    )


async def save(request: web.Request) -> web.Response:
    """Save the list under a name."""
    state, fields = state_of(request), await form(request)
    project = find_project(state, request.match_info["project"])
    given = ViewChanges(
        fields.get("name", ""), fields.get("query", ""), fields.get("sort"), fields.get("range")
    )
    return _show(project, await add(state, project, given))


async def rename(request: web.Request) -> web.Response:
    """Give a view another name."""
    state, fields = state_of(request), await form(request)
    project = find_project(state, request.match_info["project"])
    changes = ViewChanges(name=fields.get("name", ""))
    return _show(project, await change(state, project, read_view(request.match_info["view"]), changes))


async def delete(request: web.Request) -> web.Response:
    """Remove a view; its issues stay as they are."""
    state = state_of(request)
    project = find_project(state, request.match_info["project"])
    await remove(state, project, read_view(request.match_info["view"]))
    return redirect(f"/projects/{project.id}/issues")


def _show(project: Project, view: SavedView) -> web.Response:
    return redirect(f"/projects/{project.id}/issues{view_link(view)}")
