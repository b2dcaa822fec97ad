"""The edge's view of all projects: read from Kafka, or from a snapshot on disk until Kafka is first reached.

Without the snapshot, an edge that starts during an outage would know no token and refuse events that its
spool could store.
"""

import asyncio
import logging
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from broker.client import TopicFollower
from schemas.health import Part
from schemas.projects import Project, ProjectRegistry, encode_project
from schemas.settings import KafkaSettings
from schemas.topics import Topic

log = logging.getLogger(__name__)

_SAVE_SECONDS: Final = 1.0
_TRUSTED_SECONDS: Final = 10.0
"""How long after the topic was last read to its end an unknown token is taken for one that doesn't exist."""
_decode_snapshot: Final = msgspec.json.Decoder(list[Project]).decode
_encode: Final = msgspec.json.Encoder().encode


class ProjectSnapshot:
    """Maps tokens to projects: from the snapshot until this process has read the topic to its end."""

    def __init__(self, snapshot: Path) -> None:
        self._snapshot = snapshot
        self._live = ProjectRegistry()
        self._published = ProjectRegistry()
        self._saved_version = 0
        self._read = False
        self.age: Callable[[], float] = _zero
        """Seconds since the topic was last known to be read to its end."""

    @property
    def current(self) -> bool:
        """Whether an unknown token doesn't exist. A token created during an outage arrives only after it."""
        return self._read and self.age() <= _TRUSTED_SECONDS

    @property
    def known(self) -> bool:
        """Whether tokens can be looked up."""
        return self._read or len(self._published) > 0

    def by_token(self, token: str) -> Project | None:
        """The project of an unrevoked token; None if it is unknown."""
        return self._published.by_token(token)

    def by_revoked_token(self, token: str) -> Project | None:
        """The project of a revoked token; None if it is unknown."""
        return self._published.by_revoked_token(token)

    def apply(self, key: bytes, value: bytes | None) -> None:
        """Apply a record of the topic `projects`. Raises ValueError if it is invalid."""
        self._live.apply(key, value)

    def set_current(self) -> None:
        """Replace the snapshot by the topic, which has been read to its end."""
        self._published = self._live
        self._read = True

    async def run(self, settings: KafkaSettings) -> None:
        """Follow the topic and update the snapshot until cancelled."""
        with suppress(FileNotFoundError):
            await asyncio.to_thread(self.load)
        follower = TopicFollower(settings, Topic.PROJECTS, self.apply)
        # A failure of either task ends both and is raised here.
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(follower.run())
            await follower.loaded.wait()
            self.age = lambda: follower.age
            self.set_current()
            await self.save_changes()

    async def save_changes(self) -> None:
        """Write the snapshot after each change until cancelled; failed writes are retried."""
        failing = False
        while True:
            if (version := self._live.version) != self._saved_version:
                try:
                    await asyncio.to_thread(self._write, _encode(list(self._live)))
                except OSError as error:
                    if not failing:
                        log.warning(
                            "can't write the project snapshot: %s",
                            error,
                            extra={"event": "project_snapshot_failed"},
                        )
                    failing = True
                else:
                    self._saved_version, failing = version, False
            await asyncio.sleep(_SAVE_SECONDS)

    def load(self) -> None:
        """Load the last snapshot; a damaged or unreadable one is ignored. Raises FileNotFoundError if there is none."""
        try:
            projects = _decode_snapshot(self._snapshot.read_bytes())
        except FileNotFoundError:
            raise
        except (OSError, msgspec.DecodeError) as error:
            log.warning(
                "ignoring unreadable %s: %s",
                self._snapshot,
                error,
                extra={"event": "project_snapshot_ignored"},
            )
            return
        for project in projects:
            self._published.apply(project.id.encode(), encode_project(project))

    def _write(self, content: bytes) -> None:
        """Replace the snapshot atomically."""
        self._snapshot.parent.mkdir(parents=True, exist_ok=True)
        temporary = self._snapshot.with_suffix(f".{os.getpid()}")
        try:
            with temporary.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self._snapshot)
        except OSError:
            # A partial file would fill the disk further.
            with suppress(OSError):
                temporary.unlink()
            raise

    def health(self) -> Part:
        """For readyz: whether tokens can be looked up, and in which data."""
        if self._read:
            since = (
                "" if self.current else f" as of {self.age():.0f} s ago: the topic could not be read since"
            )
            return Part(True, f"{len(self._live)} projects{since}")
        if self.known:
            return Part(
                True, f"{len(self._published)} projects of the last snapshot: Kafka has not been reached"
            )
        return Part(False, "the topic has not been read to its end")


def _zero() -> float:
    return 0.0
