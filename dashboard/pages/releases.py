"""The releases of a project."""

from aiohttp import web

from dashboard.api.operation import find_project
from dashboard.pages.render import page
from dashboard.parts import state_of
from dashboard.view.filters import field_query


async def show(request: web.Request) -> web.Response:
    """What each release brought, the latest seen first."""
    state = state_of(request)
    project = find_project(state, request.match_info["project"])
    releases = (await state.parts.reader.releases(project.number)).releases
    return page(
        request,
        "releases.html",
        project=project,
        active="releases",
        releases=releases,
        most=max((release.events for release in releases), default=0),
        field_query=field_query,
    )
