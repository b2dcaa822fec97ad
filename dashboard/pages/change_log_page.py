"""Who changed what: in a project, and in all that a person administers."""

from urllib.parse import urlencode

from aiohttp import web

from dashboard.auth.authorize import administered, visible_projects
from dashboard.dependencies import state_of
from dashboard.http.inputs import PageQuery, decode_query
from dashboard.pages.render import page
from dashboard.requested_project import project_of
from storage.read.change_calls import ListChanges


async def show_changes(request: web.Request) -> web.Response:
    """Changes, newest first."""
    query = decode_query(request, PageQuery)
    project = project_of(request) if "project" in request.match_info else None
    projects = administered(request) if project is None else [project.number]
    found = await state_of(request).dependencies.reader.read(ListChanges(projects, query.limit, query.cursor))
    next_page = {"limit": query.limit, "cursor": found.next_cursor}
    return page(
        request,
        "change_log.html",
        project=project,
        active="changes",
        changes=found.changes,
        names={one.id: one.name for one in visible_projects(request)},
        first=request.path if query.cursor else "",
        next=f"{request.path}?{urlencode(next_page)}" if found.next_cursor else "",
    )
