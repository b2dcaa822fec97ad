"""Projects without Kafka; edits are immediate."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from control.project_store import ProjectRecords, ProjectStore
from schemas.change_records import Author, Change
from schemas.health import Part
from schemas.projects import Project, encode_project

TESTER: Final = Author("tester", "command")


class MemoryProjects(ProjectStore):
    """As `control.project_store.ProjectStore`."""

    def __init__(self, *projects: Project) -> None:
        self.is_loaded = True
        self.kafka = Part(ok=True)
        self._registry = ProjectRecords()
        self._writing = asyncio.Lock()
        self._uses = {}
        self.changes: list[Change] = []
        """What the topic `issue-activity` has of who changed what."""
        for project in projects:
            self._registry.apply(project.id.encode(), encode_project(project))

    @property
    def loaded(self) -> bool:
        """As it was set."""
        return self.is_loaded

    def answering(self) -> Part:
        """As it was set."""
        return self.kafka

    async def write(self, project: Project, author: Author = TESTER) -> Project:
        """As the real one, by default by the tester."""
        return await super().write(project, author)

    async def edit(
        self, number: int, change: Callable[[Project], Project], author: Author = TESTER
    ) -> Project | None:
        """As the real one, by default by the tester."""
        return await super().edit(number, change, author)

    async def _send(self, changes: Sequence[Change], key: str = "", value: bytes | None = None) -> None:
        self.changes += changes
        if key:
            self._registry.apply(key.encode(), value)
