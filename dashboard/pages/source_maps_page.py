"""The source maps of a project, by release."""

from itertools import groupby
from typing import Final

from aiohttp import web

from dashboard.api.artifacts_api import artifact_list, delete_artifacts
from dashboard.auth.auth import author_of, read_form
from dashboard.dependencies import dashboard_address, state_of
from dashboard.http.responses import redirect
from dashboard.pages.render import page
from dashboard.requested_project import project_of

MAX_RELEASES: Final = 100


async def show_source_maps(request: web.Request) -> web.Response:
    """The releases with their maps, and the command that uploads them."""
    state, project = state_of(request), project_of(request)
    found = await artifact_list(state, project)
    releases = [(name, list(maps)) for name, maps in groupby(found.artifacts, lambda one: one.release)]
    return page(
        request,
        "source_maps.html",
        project=project,
        active="settings",
        found=found,
        releases=releases[:MAX_RELEASES],
        more=len(releases) - MAX_RELEASES,
        days=max(state.settings.source_map_days, project.retention_days),
        command=f"svc sourcemaps upload --url {dashboard_address(request)} --project {project.id}"
        " --release app@1.2.3+45 dist",
    )


async def delete_source_maps(request: web.Request) -> web.Response:
    """Delete the maps of a release."""
    state, project, form = state_of(request), project_of(request), await read_form(request)
    await delete_artifacts(state, project, author_of(request), form.get("release", ""))
    return redirect(f"/projects/{project.id}/source-maps")
