"""The releases of a project."""

from urllib.parse import urlencode

from aiohttp import web

from dashboard.dependencies import state_of
from dashboard.http.inputs import PageQuery, decode_query
from dashboard.pages.render import page
from dashboard.projects import project_of
from dashboard.view.filters import field_query
from storage.reader.count_calls import ListReleases


async def show(request: web.Request) -> web.Response:
    """The releases with their events, new issues and regressions, newest first."""
    project, query = project_of(request), decode_query(request, PageQuery)
    reader = state_of(request).dependencies.reader
    releases = await reader.read(ListReleases(project.number, limit=query.limit, cursor=query.cursor))
    next_page = {"limit": query.limit, "cursor": releases.next_cursor}
    return page(
        request,
        "releases.html",
        project=project,
        active="releases",
        releases=releases.releases,
        largest=max((release.events for release in releases.releases), default=0),
        first=request.path if query.cursor else "",
        next=f"{request.path}?{urlencode(next_page)}" if releases.next_cursor else "",
        field_query=field_query,
    )
