"""The releases of a project."""

from urllib.parse import urlencode

from aiohttp import web

from dashboard.api.operation import find_project
from dashboard.dependencies import state_of
from dashboard.http.inputs import PageQuery, decode_query
from dashboard.pages.render import page
from dashboard.view.filters import field_query
from storage.reader.count_calls import ListReleases


async def show(request: web.Request) -> web.Response:
    """What each release brought, the newest first."""
    state = state_of(request)
    project = find_project(state, request.match_info["project"])
    asked = decode_query(request, PageQuery)
    found = await state.parts.reader.read(
        ListReleases(project.number, limit=asked.limit, cursor=asked.cursor)
    )
    next_page = {"limit": asked.limit, "cursor": found.next_cursor}
    return page(
        request,
        "releases.html",
        project=project,
        active="releases",
        releases=found.releases,
        most=max((release.events for release in found.releases), default=0),
        first=request.path if asked.cursor else "",
        next=f"{request.path}?{urlencode(next_page)}" if found.next_cursor else "",
        field_query=field_query,
    )
