"""A dashboard with two projects over a database that only knows of which project an issue is."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from unittest.mock import patch

from msgspec.structs import replace

from control.project_edits import create
from dashboard.auth import authorize
from dashboard.auth.session import CSRF_HEADER
from schemas.projects import ALL_PROJECTS, ApiKey, SavedView
from schemas.settings import DashboardSettings
from schemas.times import iso
from storage.errors import NO_ISSUE, NotFound, StorageUnavailable
from storage.read.counts.project_calls import CountProjects
from storage.read.execute import Executor, Limits
from storage.read.issues.issue_calls import FindProject, GetIssueVersions, IssueVersion
from storage.read.reader import A, ReadCall, Reader
from tests.unit.dashboard.auth.test_proxy_identity import PROXIED
from tests.unit.dashboard.auth.test_proxy_sign_in import csrf_of, person
from tests.unit.dashboard.site import NOW, NOWHERE, Site, running_site

OWN, UNSEEN, MISSING = 7_000_001, 7_000_002, 7_000_003
ISSUES = {OWN: "00000000000000aa", UNSEEN: "00000000000000bb", MISSING: "00000000000000cc"}
"""An issue of each project; of the last one neither is there."""
KEY = ApiKey(
    id="00000000000000ee",
    name="ci",
    scopes=("read",),
    created_at=iso(NOW),
    created_by="ann",
    expires_at=None,
    hash="",
)
"""It is in each project, and in the record of all."""
VIEW = SavedView("00000000000000dd", "mine", "is:open")


class IssueProjects(Reader):
    """A reader that knows the projects of issues, and nothing else."""

    def __init__(self) -> None:
        super().__init__(Executor([NOWHERE], Limits()))

    async def read(self, call: ReadCall[A]) -> A:
        """The answer of a look-up; no other call is answered."""
        return self._find(call)  # type: ignore[no-any-return]

    def _find(self, call: Any) -> Any:
        if isinstance(call, FindProject):
            for project in (OWN, UNSEEN):
                if call.issue == ISSUES[project]:
                    return project
            raise NotFound(NO_ISSUE)
        if isinstance(call, GetIssueVersions):
            known = () if call.project == MISSING else (ISSUES[call.project],)
            return {issue: IssueVersion(1, None) for issue in call.issues if issue in known}
        if isinstance(call, CountProjects):
            return {}
        raise StorageUnavailable("not answered")

    def for_page(self) -> Reader:
        """The same one."""
        return self


@asynccontextmanager
async def two_projects(roles: str) -> AsyncIterator[Site]:
    """A dashboard behind a proxy; `OWN` is named `shop`, `UNSEEN` is named `bank`."""
    settings = replace(PROXIED, dashboard_roles=roles)
    with patch.object(authorize, "REFUSAL_SECONDS", 1e-6):
        async with _both(settings) as site:
            yield site


@asynccontextmanager
async def _both(settings: DashboardSettings) -> AsyncIterator[Site]:
    async with running_site(IssueProjects(), number=OWN, settings=settings) as site:
        bank = replace(create("bank", now_ms=NOW), id=str(UNSEEN))
        for project in (site.project, bank):
            await site.projects.write(replace(project, saved_views=(VIEW,), keys=(KEY,)))
        await site.projects.edit(ALL_PROJECTS, lambda old: replace(old, keys=(KEY,)))
        yield site


async def signed_in(site: Site, *groups: str) -> dict[str, str]:
    """The headers of a person with a session; the client keeps its cookie."""
    headers = person("ann", *groups)
    html = await (await site.client.get("/projects", headers=headers)).text()
    return headers | {CSRF_HEADER: csrf_of(html)}
