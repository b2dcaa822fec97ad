"""What the dashboard needs of the parts below: the projects, and the reader of ClickHouse."""

from collections.abc import Callable, Sequence
from typing import Protocol

from schemas.changes import Update
from schemas.health import Part
from schemas.projects import Project
from storage.reader.answers import (
    Issue,
)


class Projects(Protocol):
    """`control.project_store.ProjectStore`, or a fake."""

    @property
    def loaded(self) -> bool:
        """Whether the projects are known yet."""
        ...

    def answering(self) -> Part:
        """Whether Kafka answers, of which projects are read."""
        ...

    def all(self) -> list[Project]:
        """Every project, in the order of creation."""
        ...

    def get(self, number: int) -> Project | None:
        """A project by its id."""
        ...

    async def write(self, project: Project) -> Project:
        """Write a new record; returns once it was read back, or what the same request has made before. Raises ProjectsUnavailable."""
        ...

    async def edit(self, number: int, change: Callable[[Project], Project]) -> Project | None:
        """Change a record; None when there is none. Raises ProjectsUnavailable and what `change` raises."""
        ...


class ChangePort(Protocol):
    """`control.issue_changes.IssueChanges`, or a fake; its module says what each does and raises."""

    async def update(self, issue: str, update: Update, *, by: str, key: str = "") -> Issue:
        """Change one issue."""
        ...

    async def update_many(
        self, project: int, issues: Sequence[str], update: Update, *, by: str, key: str = ""
    ) -> list[Issue]:
        """Change many alike."""
        ...

    async def comment(self, issue: str, text: str, *, by: str, key: str = "") -> None:
        """Say something."""
        ...

    async def merge(self, issue: str, issues: Sequence[str], *, by: str, key: str = "") -> Issue:
        """Make others a part of an issue."""
        ...

    async def unmerge(self, issue: str, fingerprints: Sequence[str], *, by: str, key: str = "") -> Issue:
        """Make parts issues of their own."""
        ...
