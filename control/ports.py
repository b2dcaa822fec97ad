"""Ports to projects and issue changes, for callers that tests run without Kafka."""

from collections.abc import Callable, Sequence
from typing import Protocol

from schemas.changes import Update
from schemas.health import Part
from schemas.projects import Project
from storage.reader.answers import Issue


class ProjectPort(Protocol):
    """`control.project_store.ProjectStore`, or a fake; its docstrings name what each method raises."""

    @property
    def loaded(self) -> bool:
        """Whether the projects are loaded."""
        ...

    def answering(self) -> Part:
        """Whether Kafka answers."""
        ...

    def all(self) -> list[Project]:
        """Every project, in order of creation."""
        ...

    def get(self, number: int) -> Project | None:
        """A project by its id."""
        ...

    async def write(self, project: Project) -> Project:
        """Write a new record and return it, or the project that the same request already created."""
        ...

    async def edit(self, number: int, change: Callable[[Project], Project]) -> Project | None:
        """Change a record; None if the project doesn't exist."""
        ...


class IssueChangePort(Protocol):
    """`control.issue_changes.IssueChanges`, or a fake; its docstrings name what each method raises."""

    async def find(self, issues: Sequence[str]) -> list[Issue]:
        """Issues as the processors know them, each or the issue that it is merged into."""
        ...

    async def update(self, issue: str, update: Update, *, by: str, key: str = "") -> Issue:
        """Change an issue."""
        ...

    async def update_many(
        self, project: int, issues: Sequence[str], update: Update, *, by: str, key: str = ""
    ) -> list[Issue]:
        """Apply the same change to many issues."""
        ...

    async def comment(self, issue: str, text: str, *, by: str, key: str = "") -> None:
        """Comment on an issue."""
        ...

    async def merge(self, issue: str, issues: Sequence[str], *, by: str, key: str = "") -> Issue:
        """Merge other issues into this one."""
        ...

    async def unmerge(self, issue: str, fingerprints: Sequence[str], *, by: str, key: str = "") -> Issue:
        """Split merged fingerprints off into issues of their own."""
        ...
