"""The projects of the compacted topic `projects`: followed for reading, written by CLI and dashboard."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

import msgspec

from broker.client import follow_projects, name_of, open_producer
from broker.errors import KafkaError
from control.change_log import changes_between, unconfirmed
from control.project_edits import already_created
from control.project_record import written_over
from schemas.change_records import Author, Change
from schemas.errors import ProjectsUnavailable
from schemas.health import Part
from schemas.issues import encode_json
from schemas.projects import LAST_USE, ApiKey, Project, ProjectRegistry, encode_project
from schemas.settings import KafkaSettings
from schemas.topics import Topic

log = logging.getLogger(__name__)


class ProjectRecords(ProjectRegistry):
    """The projects, and the record of each as it was read: it may have fields of a newer version."""

    def __init__(self) -> None:
        super().__init__()
        self.values: dict[int, bytes] = {}

    def apply(self, key: bytes, value: bytes | None) -> None:
        """Apply a record, as the registry does, and keep its bytes."""
        super().apply(key, value)
        if key.startswith(LAST_USE):
            return
        self.values.pop(int(key), None)
        if value:
            self.values[int(key)] = value


class ProjectStore:
    """Reads and writes projects. `async with` waits until all are loaded; servers call `start` and check `loaded`.

    Who changes what is recorded in `issue-activity` before the change, so that no change lacks its record.

    An edit is a read-modify-write without a lock across processes. If two processes change the same project
    within a few milliseconds, one change can be lost. People make these changes, so that is rare and they
    notice it.
    """

    def __init__(self, settings: KafkaSettings, deadline_seconds: float = 10.0) -> None:
        self._settings = settings
        self._deadline = deadline_seconds
        self._registry = ProjectRecords()
        self._follower = follow_projects(settings, self._registry)
        self._task: asyncio.Task[None] | None = None
        self._writing = asyncio.Lock()
        self._uses: dict[str, asyncio.Task[None]] = {}

    async def __aenter__(self) -> Self:
        """Start, and wait until the topic has been read. Raises ProjectsUnavailable after the deadline."""
        self.start()
        try:
            async with asyncio.timeout(self._deadline):
                await self._follower.loaded.wait()
        except BaseException as error:
            await self.stop()
            if isinstance(error, TimeoutError):
                raise ProjectsUnavailable("the projects topic could not be read in time") from None
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def start(self) -> None:
        """Start following the topic without waiting."""
        self._task = asyncio.create_task(self._follower.run(), name="follow projects")

    async def stop(self) -> None:
        for use in self._uses.values():
            use.cancel()
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            # `wait`, unlike `await task`, tells the task's cancellation from the caller's.
            await asyncio.wait([task])
            if not task.cancelled():
                task.result()

    @property
    def loaded(self) -> bool:
        """Whether every record that was in the topic at the start has been read."""
        return self._follower.loaded.is_set()

    def answering(self) -> Part:
        """Whether Kafka answers, for readiness."""
        return self._follower.answering()

    @property
    def registry(self) -> ProjectRegistry:
        """The projects and their keys, to look up."""
        return self._registry

    def all(self) -> list[Project]:
        """Every project, in order of creation."""
        return list(self._registry)

    def get(self, number: int) -> Project | None:
        return self._registry.get(number)

    async def write(self, project: Project, author: Author) -> Project:
        """Write a new project and read it back; a repeated request returns the project it already created.

        Raises ProjectsUnavailable and KeyReused.
        """
        async with self._writing:
            return already_created(self._registry, project) or await self._write(
                None, project, encode_project(project), author
            )

    async def edit(self, number: int, change: Callable[[Project], Project], author: Author) -> Project | None:
        """Apply `change` to the newest known record and write it; None if the project doesn't exist.

        Fields of the record that this version doesn't know stay (`control.project_record`).

        Raises ProjectsUnavailable, and the errors of `change`.
        """
        async with self._writing:
            project = self._registry.record(number)
            if project is None:
                return None
            changed = change(project)
            if changed == project:
                return project
            value = written_over(self._registry.values.get(number, b"{}"), changed)
            return await self._write(project, changed, value, author)

    async def remove(self, number: int) -> None:
        """Write a tombstone for the project; its erasure is recorded before. Raises ProjectsUnavailable."""
        async with self._writing:
            await self._send([], str(number))

    def note_use(self, key: ApiKey, day: str) -> None:
        """Write the day of the key's last use in the background; after a failure the next use tries again.

        It has its own record: written into the project's, it could undo a revocation by another process.
        """
        if self._registry.last_used.get(key.id, "") < day and key.id not in self._uses:
            self._uses[key.id] = asyncio.create_task(self._write_use(key.id, day), name="note a key's use")
            self._uses[key.id].add_done_callback(lambda _: self._uses.pop(key.id))

    async def _write_use(self, key: str, day: str) -> None:
        with suppress(ProjectsUnavailable):
            await self._send([], LAST_USE.decode() + key, msgspec.json.encode(day))

    async def record(self, change: Change) -> None:
        """Write a record of what changes no project's record. Raises ProjectsUnavailable."""
        await self._send([change])

    async def _write(self, old: Project | None, project: Project, value: bytes, author: Author) -> Project:
        changes = changes_between(old, project, author, time.time_ns() // 1_000_000)
        await self._send(changes, project.id, value)
        return project

    async def _send(self, changes: Sequence[Change], key: str = "", value: bytes | None = None) -> None:
        """Write the records of changes, then the project's, and read it back; without a key only the former."""
        is_recorded = False
        try:
            # One producer per write: writes are rare, and a producer that a broker's stop broke is not reused.
            async with (
                asyncio.timeout(self._deadline),
                open_producer(self._settings, enable_idempotence=False) as producer,
            ):
                topic = name_of(self._settings, Topic.ISSUE_ACTIVITY)
                for change in changes:
                    await producer.send_and_wait(topic, encode_json(change), key=change.project_id.encode())
                    is_recorded = bool(key)
                if key:
                    topic = name_of(self._settings, Topic.PROJECTS)
                    written = await producer.send_and_wait(topic, value, key=key.encode())
                    await self._follower.reached(written.partition, written.offset)
        except (TimeoutError, KafkaError, OSError) as error:
            log.warning(
                "can't write record %s of the projects, repeat the change: %r",
                key or changes[0].project_id,
                error,
                extra={"event": "project_write_failed"},
            )
            if is_recorded:
                with suppress(ProjectsUnavailable):
                    await self._send([*map(unconfirmed, changes)])
            raise ProjectsUnavailable("the change could not be written in time") from error
