"""The releases of a project."""

from collections.abc import Sequence
from typing import Final
from urllib.parse import urlencode

from aiohttp import web

from dashboard.dependencies import state_of
from dashboard.http.inputs import PageQuery, decode_query, is_text
from dashboard.pages.render import page
from dashboard.requested_project import project_of
from schemas.changes import MAX_RELEASE
from schemas.read_api import Release, Verdict
from schemas.releases import split_release
from storage.read.counts.count_calls import ListReleases
from storage.read.counts.release_comparison import CompareReleases

VERDICTS: Final[dict[Verdict, str]] = {
    "new": "New",
    "worse": "Worse",
    "better": "Better",
    "gone": "Gone",
    "same": "About the same",
}
"""Verdicts in the order of the page."""


async def show_releases(request: web.Request) -> web.Response:
    """The releases with their events, new issues and regressions, newest first."""
    project, query = project_of(request), decode_query(request, PageQuery)
    reader = state_of(request).dependencies.reader
    releases = await reader.read(ListReleases(project.number, limit=query.limit, cursor=query.cursor))
    compared = request.query.get("before", "")[:MAX_RELEASE], request.query.get("after", "")[:MAX_RELEASE]
    comparison = (
        await reader.read(CompareReleases(project.number, *compared))
        if all(compared) and all(map(is_text, compared))
        else None
    )
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
        before=compared[0],
        after=compared[1],
        comparison=comparison,
        offered=compared if comparison else offered(releases.releases),
        verdicts=VERDICTS,
    )


def offered(releases: Sequence[Release]) -> tuple[str, str] | None:
    """The release before the newest one, and the newest; None of fewer than two.

    The first is of the same application as the newest, if there is one.
    """
    if len(releases) < 2:
        return None
    newest, *others = (one.release for one in releases)
    app = split_release(newest).app
    return next((name for name in others if split_release(name).app == app), others[0]), newest
