"""What pages show of a project besides their subject: its releases, and the people that issues are assigned to.

Each is read once a minute, however many pages show it. The reads scan all issues of a project, so a page waits for
them for a second and is then shown without them.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from msgspec import Struct

from schemas.read_api import Release
from storage.errors import ReadError
from storage.read.counts.completion import CompleteField
from storage.read.counts.count_calls import ListReleases
from storage.read.reader import Reader

log = logging.getLogger(__name__)
T = TypeVar("T")


class _Found(Struct, Generic[T], frozen=True):
    at: float
    values: Sequence[T]


class KeptReads(Generic[T]):
    """Keeps what `read` finds for each project. The owner calls `cancel_reads` at the end."""

    keep_seconds: float = 60.0
    wait_seconds: float = 1.0
    """How long a page waits for a first read."""

    def __init__(
        self,
        read: Callable[[Reader, int], Awaitable[Sequence[T]]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read_project = read
        self._clock = clock
        self._found: dict[int, _Found[T]] = {}
        self._reading: dict[int, asyncio.Task[None]] = {}

    async def of(self, reader: Reader, project: int) -> Sequence[T]:
        """The values, up to a minute old; empty if they are unknown or can't be read in time."""
        found = self._found.get(project)
        if found is not None and self._clock() - found.at < self.keep_seconds:
            return found.values
        reading = self._reading.get(project)
        if reading is None:
            reading = self._reading[project] = asyncio.create_task(self._read(reader, project))
        if found is None:
            await asyncio.wait([reading], timeout=self.wait_seconds)
        known = self._found.get(project)
        return known.values if known is not None else ()

    async def cancel_reads(self) -> None:
        """Cancel the running reads."""
        for reading in self._reading.values():
            reading.cancel()
        await asyncio.gather(*self._reading.values(), return_exceptions=True)

    async def _read(self, reader: Reader, project: int) -> None:
        found = self._found.get(project)
        values = found.values if found is not None else ()
        try:
            values = await self._read_project(reader, project)
        except ReadError as error:
            log.debug(
                "can't read releases or assignees of project %d: %s",
                project,
                error,
                extra={"event": "kept_read_failed"},
            )
        finally:
            del self._reading[project]
        self._found[project] = _Found(self._clock(), values)


async def newest_releases(reader: Reader, project: int) -> Sequence[Release]:
    """The newest by their first event."""
    return (await reader.read(ListReleases(project))).releases


async def assigned_people(reader: Reader, project: int) -> Sequence[str]:
    """Those with the most issues."""
    return [one.value for one in (await reader.read(CompleteField(project, "assignee"))).values]
