"""The one place that decides what a signed-in person may do: each operation and page declares the role it needs.

For whoever has no role in a project, the project and its issues don't exist: the answer is the same, after the
same work.
"""

import time
from asyncio import sleep
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Handler

from dashboard.auth.access import Role
from dashboard.auth.auth import IDENTITY
from dashboard.dependencies import state_of
from dashboard.http.http_errors import HttpError, unavailable
from dashboard.http.inputs import read_issue
from dashboard.requested_project import no_project, project_of
from schemas.errors import WireError
from schemas.projects import Project
from storage.errors import NO_ISSUE, NotFound
from storage.read.issues.issue_calls import FindProject, GetIssueVersions

REFUSAL_SECONDS: Final = 0.1
"""Issues are refused at multiples of this: ClickHouse reads less for an id that is far from all others."""


def authorized(handler: Handler, needs: Role, *, of_uploads: bool = False) -> Handler:
    """The handler, for those who have the role in the project of the path, or everywhere where it has none.

    Those `of_uploads` are also for keys with the scope `artifacts`.
    """

    async def authorize(request: web.Request) -> web.StreamResponse:
        if of_uploads and request[IDENTITY].access.may_upload(project_of(request)):
            return await handler(request)
        if request[IDENTITY].access.everywhere < needs and await _role(request) < needs:
            raise HttpError(WireError.FORBIDDEN, sentence=f"this needs the role {needs.title}")
        return await handler(request)

    return authorize


def visible_projects(request: web.Request) -> list[Project]:
    """The projects that exist for the person, in order of creation; none without a sign-in."""
    identity = request.get(IDENTITY)
    return identity.access.visible(state_of(request).dependencies.projects.all()) if identity else []


def administered(request: web.Request) -> list[int] | None:
    """The projects that the person administers; None for all, those that were erased among them."""
    access = request[IDENTITY].access
    if access.everywhere >= Role.ADMIN:
        return None
    return [one.number for one in visible_projects(request) if access.role_in(one) >= Role.ADMIN]


async def require_issues(request: web.Request, issues: Sequence[str], needs: Role = Role.MEMBER) -> None:
    """Raises NotFound unless the issues are of the path's project; who has the role everywhere needs no look-up."""
    if request[IDENTITY].access.everywhere < needs:
        is_named = "project" in request.match_info
        project = project_of(request).number if is_named else await _project_of_issue(request)
        found = await state_of(request).dependencies.reader.read(GetIssueVersions(project, issues))
        if not found.keys() >= set(issues):
            raise NotFound(NO_ISSUE)


async def _project_of_issue(request: web.Request) -> int:
    issue = read_issue(request.match_info["issue"])
    return await state_of(request).dependencies.reader.read(FindProject(issue))


async def _role(request: web.Request) -> Role:
    """The person's role in the project of the path. Raises HttpError and NotFound where there is none."""
    access = request[IDENTITY].access
    if "project" in request.match_info:
        role = access.role_in(project_of(request))
        if not role:
            raise no_project()
        return role
    if "issue" in request.match_info:
        projects = state_of(request).dependencies.projects
        if not projects.loaded:
            raise unavailable("projects are not loaded yet")
        started = time.monotonic()
        with suppress(NotFound):
            project = projects.get(await _project_of_issue(request))
            if project is not None and (role := access.role_in(project)):
                return role
        await sleep(-(time.monotonic() - started) % REFUSAL_SECONDS)
        raise NotFound(NO_ISSUE)
    return access.everywhere
