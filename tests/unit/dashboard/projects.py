"""Projects without Kafka; edits are immediate."""

from collections.abc import Callable

from control.project_edits import already_created
from control.project_store import ProjectStore
from schemas.health import Part
from schemas.projects import Project


class MemoryProjects(ProjectStore):
    """As `control.project_store.ProjectStore`."""

    def __init__(self, *projects: Project) -> None:
        self.is_loaded = True
        self.kafka = Part(ok=True)
        self._projects = {project.number: project for project in projects}

    @property
    def loaded(self) -> bool:
        """As it was set."""
        return self.is_loaded

    def answering(self) -> Part:
        """As it was set."""
        return self.kafka

    def all(self) -> list[Project]:
        """Every project, in the order of creation."""
        return sorted(self._projects.values(), key=lambda project: (project.created_at, project.id))

    def get(self, number: int) -> Project | None:
        """A project by its id."""
        return self._projects.get(number)

    async def write(self, project: Project) -> Project:
        """Keep a new record, or find the record that the same request created before."""
        return already_created(self._projects.values(), project) or self._keep(project)

    async def edit(self, number: int, change: Callable[[Project], Project]) -> Project | None:
        """Change a record; None when there is none."""
        project = self._projects.get(number)
        return None if project is None else self._keep(change(project))

    def _keep(self, project: Project) -> Project:
        self._projects[project.number] = project
        return project
