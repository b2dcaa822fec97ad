"""Projects without Kafka; edits are immediate."""

import asyncio

from control.project_store import ProjectRecords, ProjectStore
from schemas.health import Part
from schemas.projects import Project, encode_project


class MemoryProjects(ProjectStore):
    """As `control.project_store.ProjectStore`."""

    def __init__(self, *projects: Project) -> None:
        self.is_loaded = True
        self.kafka = Part(ok=True)
        self._registry = ProjectRecords()
        self._writing = asyncio.Lock()
        self._uses = {}
        for project in projects:
            self._registry.apply(project.id.encode(), encode_project(project))

    @property
    def loaded(self) -> bool:
        """As it was set."""
        return self.is_loaded

    def answering(self) -> Part:
        """As it was set."""
        return self.kafka

    async def _send_and_wait(self, key: str, value: bytes | None) -> None:
        self._registry.apply(key.encode(), value)
