"""The times at which a project's releases were first seen, for the marks of charts.

They are read once a minute, however many pages show them. The read scans all issues of a project, and a page
is worth more than its marks: a page that has waited a second is shown without them.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from schemas.read_api import Release
from storage.errors import ReadError
from storage.read.counts.count_calls import ListReleases
from storage.read.reader import Reader

log = logging.getLogger(__name__)
KEEP_SECONDS: Final = 60.0
WAIT_SECONDS: Final = 1.0


class _Found(Struct, frozen=True):
    at: float
    releases: Sequence[Release]


class ReleaseStarts:
    """The newest releases by project. The owner calls `cancel_reads` at the end."""

    def __init__(
        self,
        keep_seconds: float = KEEP_SECONDS,
        wait_seconds: float = WAIT_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._keep_seconds = keep_seconds
        self._wait_seconds = wait_seconds
        self._clock = clock
        self._found: dict[int, _Found] = {}
        self._reading: dict[int, asyncio.Task[None]] = {}

    async def of(self, reader: Reader, project: int) -> Sequence[Release]:
        """The newest by their first event, up to a minute old; empty if they are unknown or can't be read in time."""
        found = self._found.get(project)
        if found is not None and self._clock() - found.at < self._keep_seconds:
            return found.releases
        reading = self._reading.get(project)
        if reading is None:
            reading = self._reading[project] = asyncio.create_task(self._read(reader, project))
        if found is None:
            await asyncio.wait([reading], timeout=self._wait_seconds)
        known = self._found.get(project)
        return known.releases if known is not None else ()

    async def cancel_reads(self) -> None:
        """Cancel the running reads."""
        for reading in self._reading.values():
            reading.cancel()
        await asyncio.gather(*self._reading.values(), return_exceptions=True)

    async def _read(self, reader: Reader, project: int) -> None:
        found = self._found.get(project)
        releases = found.releases if found is not None else ()
        try:
            releases = (await reader.read(ListReleases(project))).releases
        except ReadError as error:
            log.debug(
                "can't read the releases of project %d: %s",
                project,
                error,
                extra={"event": "release_read_failed"},
            )
        finally:
            del self._reading[project]
        self._found[project] = _Found(self._clock(), releases)
