"""Saved views of the issue list: links, and forms to save, rename and remove them."""

from functools import partial
from urllib.parse import urlencode

from aiohttp import web

from control.project_edits import ViewChanges
from dashboard.api.views_api import NewView, delete_view, edit_view, save_view
from dashboard.auth.auth import read_form
from dashboard.dependencies import state_of
from dashboard.http.inputs import decode_fields, read_view
from dashboard.http.responses import redirect
from dashboard.pages.list_parameters import ALL_STATES, PLAIN_SORT, ListParameters
from dashboard.requested_project import edit_project, project_of
from dashboard.time_ranges import range_parameters
from dashboard.view.filters import split_view
from schemas.projects import Project, SavedView


def query_to_save(parameters: ListParameters) -> str:
    """The query of a view of this list."""
    return parameters.text if parameters.environment or parameters.state else parameters.query.strip()


def current_view(project: Project, parameters: ListParameters) -> SavedView | None:
    """The saved view that the list shows, if any."""
    shown = (split_view(query_to_save(parameters)), parameters.sort, parameters.time_range.text)
    return next(
        (view for view in project.saved_views if (split_view(view.query), view.sort, view.range) == shown),
        None,
    )


def view_link(view: SavedView) -> str:
    """The query string for the list of a view."""
    environment, state, query = split_view(view.query)
    fields = {
        "query": query,
        "environment": environment,
        "sort": "" if view.sort == PLAIN_SORT else view.sort,
        "state": state or ("" if "is:" in query else ALL_STATES),
    }
    return "?" + urlencode(
        {name: value for name, value in (fields | range_parameters(view.range)).items() if value}
    )


async def post_view(request: web.Request) -> web.Response:
    """Save the list under a name."""
    view, now_ms = decode_fields(await read_form(request), NewView), state_of(request).dependencies.now_ms()
    return _show(request, await save_view(partial(edit_project, request), view, now_ms))


async def post_view_name(request: web.Request) -> web.Response:
    """Rename a view."""
    changes = decode_fields(await read_form(request), ViewChanges)
    view, now_ms = read_view(request.match_info["view"]), state_of(request).dependencies.now_ms()
    return _show(request, await edit_view(partial(edit_project, request), view, changes, now_ms))


async def post_view_removal(request: web.Request) -> web.Response:
    """Remove a view; its issues don't change."""
    await delete_view(partial(edit_project, request), read_view(request.match_info["view"]))
    return redirect(f"/projects/{project_of(request).id}/issues")


def _show(request: web.Request, view: SavedView) -> web.Response:
    return redirect(f"/projects/{project_of(request).id}/issues{view_link(view)}")
