"""The projects as the compacted topic `projects` holds them: followed for reading, written by the command and the dashboard."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

from broker.client import follow_projects, name_of, writing
from broker.errors import KafkaError
from control.project_edits import already_created
from schemas.errors import ProjectsUnavailable
from schemas.health import Part
from schemas.projects import Project, ProjectRegistry, encode_project
from schemas.settings import KafkaSettings
from schemas.topics import Topic

log = logging.getLogger(__name__)


class ProjectStore:
    """Reads and writes projects. `async with` waits until all are loaded; a server calls `start` and looks at `loaded`.

    An edit is a read-modify-write without a lock between processes: two processes that change the same project within the
    same few milliseconds can lose one change. People change projects; that is rare enough, and seen at once.
    """

    def __init__(self, settings: KafkaSettings, deadline_seconds: float = 10.0) -> None:
        self._settings = settings
        self._deadline = deadline_seconds
        self._registry = ProjectRegistry()
        self._follower = follow_projects(settings, self._registry)
        self._task: asyncio.Task[None] | None = None
        self._writing = asyncio.Lock()

    async def __aenter__(self) -> Self:
        """Start, and wait until the topic has been read. Raises ProjectsUnavailable after the deadline."""
        self.start()
        try:
            async with asyncio.timeout(self._deadline):
                await self._follower.loaded.wait()
        except TimeoutError:
            await self.stop()
            raise ProjectsUnavailable("the topic of projects could not be read in time") from None
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def start(self) -> None:
        """Begin to follow the topic, without waiting."""
        self._task = asyncio.create_task(self._follower.run(), name="follow projects")

    async def stop(self) -> None:
        """Stop following."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            self._task = None

    @property
    def loaded(self) -> bool:
        """Whether what stood in the topic at the start is known."""
        return self._follower.loaded.is_set()

    def answering(self) -> Part:
        """Whether Kafka answers: for readiness."""
        return self._follower.answering()

    def all(self) -> list[Project]:
        """Every project, in the order of creation."""
        return list(self._registry)

    def get(self, number: int) -> Project | None:
        """A project by its id."""
        return self._registry.get(number)

    async def write(self, project: Project) -> Project:
        """Write a new record; returns once it was read back, or what the same request has made before. Raises ProjectsUnavailable."""
        async with self._writing:
            return already_created(self._registry, project) or await self._within_deadline(project)

    async def edit(self, number: int, change: Callable[[Project], Project]) -> Project | None:
        """Apply `change` to the newest known record and write it; None when there is no such project.

        Raises ProjectsUnavailable, and what `change` raises.
        """
        async with self._writing:
            project = self._registry.get(number)
            if project is None:
                return None
            changed = change(project)
            return project if changed == project else await self._within_deadline(changed)

    async def remove(self, number: int) -> None:
        """Write that there is no such project any more. Raises ProjectsUnavailable."""
        async with self._writing:
            await self._confirmed(str(number), None)

    async def _within_deadline(self, project: Project) -> Project:
        await self._confirmed(project.id, encode_project(project))
        return project

    async def _confirmed(self, key: str, value: bytes | None) -> None:
        try:
            async with asyncio.timeout(self._deadline):
                partition, offset = await self._send(key, value)
                await self._follower.reached(partition, offset)
        except (TimeoutError, KafkaError, OSError) as error:
            log.warning("project %s was not written: %r", key, error)
            raise ProjectsUnavailable("the change could not be written in time") from error

    async def _send(self, key: str, value: bytes | None) -> tuple[int, int]:
        # A producer a write: writes are rare, and one that a broker's stop has broken can't outlive its write.
        async with writing(self._settings, enable_idempotence=False) as producer:
            topic = name_of(self._settings, Topic.PROJECTS)
            written = await producer.send_and_wait(topic, value, key=key.encode())
        return written.partition, written.offset
