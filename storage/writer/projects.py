"""What the writer knows of projects: how long each keeps its events, and the rows of the table `projects`."""

import asyncio
import time
from typing import Final

from schemas.projects import DEFAULT_RETENTION_DAYS, ProjectRegistry
from storage.writer.inserter import Inserter
from storage.writer.record_rows import PROJECTS, payload_days, project_row, table

_LOOK_SECONDS: Final = 2.0
_LONGEST_DAYS: Final = 65_535


class RegistryRetention:
    """Retention by the registry; a project that isn't in it keeps its events for the default."""

    def __init__(self, registry: ProjectRegistry) -> None:
        self._registry = registry
        self._version = -1
        self._days: dict[int, tuple[int, int]] = {}

    def days(self, project: int) -> tuple[int, int]:
        """Days of the events and of their payloads."""
        if self._version != self._registry.version:
            self._version, self._days = self._registry.version, {}
        known = self._days.get(project)
        if known is None:
            found = self._registry.get(project)
            days = found.retention_days if found else DEFAULT_RETENTION_DAYS
            payloads = payload_days(found) if found else days
            known = self._days[project] = (min(days, _LONGEST_DAYS), min(payloads, _LONGEST_DAYS))
        return known


async def write_projects(registry: ProjectRegistry, inserter: Inserter) -> None:
    """Keep the table `projects` like the registry, until cancelled."""
    written = 0
    while True:
        if registry.version != written:
            written = registry.version
            now = time.time_ns() // 1_000_000
            rows = table(PROJECTS, [project_row(project, now) for project in registry])
            if rows.num_rows:
                await inserter.insert("projects", rows, f"projects/{now}")
        await asyncio.sleep(_LOOK_SECONDS)
