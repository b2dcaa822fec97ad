"""Discarding what comes in for an issue: its fingerprints stand in the project, so the grouper drops their events."""

from collections.abc import Callable, Sequence
from typing import Protocol

from control import project_edits
from schemas.changes import Update
from schemas.projects import Project
from storage.errors import NotFound
from storage.reader.answers import Issue


class Edits(Protocol):
    """What `control.project_store.ProjectStore` does to a project."""

    async def edit(self, number: int, change: Callable[[Project], Project]) -> Project | None:
        """Change a project's record; None when there is none."""
        ...


class IssueChanger(Protocol):
    """What `control.issue_changes.IssueChanges` does to an issue."""

    async def update(self, issue: str, update: Update, *, by: str, key: str = "") -> Issue:
        """Change an issue."""
        ...


async def set_discarded(
    projects: Edits, changes: IssueChanger, issue: Issue, wanted: bool, *, by: str, request: str = ""
) -> Issue:
    """Drop the issue's new events and ignore it for ever, or store them again and open it.

    `request` names the request where it is made once under its key. Raises BadChange, KeyReused, ProjectsUnavailable and what `update`
    raises; asked for again, it completes what was left half done.
    """
    fingerprints: Sequence[str] = issue.fingerprints
    change = project_edits.discard if wanted else project_edits.keep

    def edit(old: Project) -> Project:
        return project_edits.apply_once(old, request, lambda project: change(project, fingerprints))

    if await projects.edit(int(issue.project_id), edit) is None:
        raise NotFound("there is no such project")
    return await changes.update(issue.id, Update(status="ignored" if wanted else "open"), by=by, key=request)
