"""The edge's view of all projects: followed from Kafka, and from a snapshot on disk while Kafka hasn't been reached.

Without the snapshot an edge that starts during an outage would know no token and have to refuse what its spool could take.
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
"""So long after the topic's end was last seen, a token that isn't known counts as one that doesn't exist."""
_decode_snapshot: Final = msgspec.json.Decoder(list[Project]).decode
_encode: Final = msgspec.json.Encoder().encode


class ProjectSnapshot:
    """Tokens to projects, from the snapshot until the topic has been read to its end in this process."""

    def __init__(self, snapshot: Path) -> None:
        self._snapshot = snapshot
        self._live = ProjectRegistry()
        self._shown = ProjectRegistry()
        self._saved_version = 0
        self._read = False
        self.age: Callable[[], float] = _no_time
        """Seconds since everything in the topic was known."""

    @property
    def current(self) -> bool:
        """Whether a token that isn't known doesn't exist; one that was made during an outage reaches us only after it."""
        return self._read and self.age() <= _TRUSTED_SECONDS

    @property
    def known(self) -> bool:
        """Whether there is anything to look tokens up in."""
        return self._read or len(self._shown) > 0

    def by_token(self, token: str) -> Project | None:
        """The project of an unrevoked token, as far as is known."""
        return self._shown.by_token(token)

    def apply(self, key: bytes, value: bytes | None) -> None:
        """One record of the topic `projects`. Raises ValueError for a bad one."""
        self._live.apply(key, value)

    def set_current(self) -> None:
        """The topic has been read to its end: from now on it is what is believed."""
        self._shown = self._live
        self._read = True

    async def run(self, settings: KafkaSettings) -> None:
        """Follow the topic and keep the snapshot until cancelled."""
        with suppress(FileNotFoundError):
            await asyncio.to_thread(self.load)
        follower = TopicFollower(settings, Topic.PROJECTS, self.apply)
        # A fault of either ends both, and whoever runs this hears of it.
        async with asyncio.TaskGroup() as both:
            both.create_task(follower.run())
            await follower.loaded.wait()
            self.age = lambda: follower.age
            self.set_current()
            await self.keep()

    async def keep(self) -> None:
        """Write the snapshot after each change until cancelled; what the disk refuses is tried again, and nothing else waits for it."""
        refused = False
        while True:
            if (version := self._live.version) != self._saved_version:
                try:
                    await asyncio.to_thread(self._write, _encode(list(self._live)))
                except OSError as error:
                    if not refused:
                        log.warning("the snapshot of the projects can't be written: %s", error)
                    refused = True
                else:
                    self._saved_version, refused = version, False
            await asyncio.sleep(_SAVE_SECONDS)

    def load(self) -> None:
        """Show the last snapshot. Raises FileNotFoundError where there is none; a damaged or unreadable one is passed over."""
        try:
            projects = _decode_snapshot(self._snapshot.read_bytes())
        except FileNotFoundError:
            raise
        except (OSError, msgspec.DecodeError) as error:
            log.warning("%s can't be read and is passed over: %s", self._snapshot, error)
            return
        for project in projects:
            self._shown.apply(project.id.encode(), encode_project(project))

    def save(self) -> None:
        """Write what the topic says to the disk, whole or not at all."""
        self._write(_encode(list(self._live)))

    def _write(self, content: bytes) -> None:
        self._snapshot.parent.mkdir(parents=True, exist_ok=True)
        fresh = self._snapshot.with_suffix(f".{os.getpid()}")
        try:
            with fresh.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(self._snapshot)
        except OSError:
            # What was begun would fill the disk further.
            with suppress(OSError):
                fresh.unlink()
            raise

    def health(self) -> Part:
        """For readyz: whether tokens can be told, and from where."""
        if self._read:
            since = "" if self.current else f" as of {self.age():.0f} s ago: Kafka has not answered since"
            return Part(True, f"{len(self._live)} projects{since}")
        if self.known:
            return Part(True, f"{len(self._shown)} projects of the last snapshot: Kafka has not been reached")
        return Part(False, "the topic has not been read to its end")


def _no_time() -> float:
    return 0.0
