"""Resolves the frames of events when they are read; nothing of it is stored.

In a project without source maps this is one look-up each `LOOK_SECONDS`. A map that arrives later serves the events
that are there.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Raw, Struct

from schemas.errors import ChangesUnavailable
from schemas.read_api import NO_SOURCE, EventDetail, Issue, IssueSource, ResolvedError
from sourcemaps.event_frames import Found, MapFrames, by_map, decode_sent, resolved_error, source_of
from sourcemaps.worker import SourceMapWorker, WorkerFailed
from sourcemaps.worker_messages import (
    Check,
    Checked,
    ContentMissing,
    NotUsable,
    Resolve,
    Resolved,
    Upload,
)
from storage.errors import ReadError
from storage.read.artifacts import FindArtifacts, GetArtifact, GetLastPayloads, HasArtifacts
from storage.read.reader import Reader

LOOK_SECONDS: Final = 10.0
PAGE_SECONDS: Final = 2.0
"""Maximum wait of a page for source maps; a late result serves the next call."""
KEEP_SECONDS: Final = 300.0
"""Lifetime of an issue's source, since newer events may have another one, and of the mark of a map that failed."""
_MISSED_SECONDS: Final = 60.0
"""Lifetime of an issue's missing source: another process may have taken a map for it."""
_MAX_KEPT: Final = 20_000
_MAX_FAILED: Final = 1_000
PLATFORMS: Final = frozenset({"javascript", "android"})
T = TypeVar("T")


class Resolution(Struct, frozen=True):
    """The resolved error of an event, and the source of its first frame; None if nothing was resolved."""

    error: dict[str, Any] | None
    problems: list[str]
    source: IssueSource | None = None


class Resolver:
    """Resolves events of the database that `reader` reads. Uploads are checked by a second worker."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._worker, self._upload_worker = SourceMapWorker(), SourceMapWorker()
        self._looked: dict[int, tuple[float, bool]] = {}
        self._sources: dict[tuple[int, str], tuple[float, IssueSource]] = {}
        self._failed: dict[str, tuple[float, str]] = {}
        self._tasks: dict[tuple[int, *tuple[str, ...]], asyncio.Task[Any]] = {}
        """By project and by what is asked: those that run, and those that ended too late for who asked."""
        self.uploading = asyncio.Semaphore(2)
        """Turns of uploads, each of which may take 100 MB."""

    async def check(self, upload: Upload) -> Checked | NotUsable:
        """Check an upload: its kind, id and content, or the reason to refuse it. Raises ChangesUnavailable."""
        try:
            answer = await self._upload_worker.ask(Check(upload))
        except WorkerFailed as error:
            return NotUsable(str(error))
        assert isinstance(answer, Checked | NotUsable)
        return answer

    def forget(self, project: int) -> None:
        """Look again after a change of the project's maps."""
        self._looked.pop(project, None)
        self._sources = {key: source for key, source in self._sources.items() if key[0] != project}
        for key in [key for key, task in self._tasks.items() if key[0] == project and task.done()]:
            del self._tasks[key]

    async def with_source(self, detail: EventDetail) -> EventDetail:
        """The event with its error as maps resolve it; unchanged in a project without maps."""
        project = int(detail.project_id)
        if detail.event is None or not await self.has_maps(project):
            return detail
        payload = bytes(detail.event)
        found = await self._soon(
            (project, detail.event_id), lambda: self._resolve(project, payload), PAGE_SECONDS
        )
        if found is None:
            resolved = ResolvedError(None, ["the source maps are still being read: reload in a moment"])
        else:
            error = None if found.error is None else Raw(msgspec.json.encode(found.error))
            resolved = ResolvedError(error, found.problems)
        return msgspec.structs.replace(detail, resolved=resolved)

    async def sources(
        self, project: int, issues: Iterable[Issue], seconds: float | None = None
    ) -> dict[str, IssueSource]:
        """The original places of issues, empty where maps resolve none.

        Issues that aren't known after `seconds`, by default `PAGE_SECONDS`, are left out, and all of a project
        without maps.
        """
        wanted = [issue.id for issue in issues if issue.platform in PLATFORMS]
        if not wanted or not await self.has_maps(project):
            return {}
        now = time.monotonic()
        known = {key: source for key in wanted if (source := self._kept(project, key, now)) is not None}
        if missing := [issue for issue in wanted if issue not in known]:
            wait = PAGE_SECONDS if seconds is None else seconds
            await self._soon((project, *missing), lambda: self._find_sources(project, missing), wait)
            known |= {key: source for key in missing if (source := self._kept(project, key, now)) is not None}
        return known

    async def close(self) -> None:
        """End the workers."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        await self._worker.close()
        await self._upload_worker.close()

    def _kept(self, project: int, issue: str, now: float) -> IssueSource | None:
        until, source = self._sources.get((project, issue), (0.0, None))
        return source if until > now else None

    async def has_maps(self, project: int) -> bool:
        """Whether a project has any, by a look at most `LOOK_SECONDS` ago."""
        until, has_maps = self._looked.get(project, (0.0, False))
        if until < time.monotonic():
            try:
                has_maps = await self._reader.read(HasArtifacts(project))
            except ReadError:
                return False
            self._looked[project] = time.monotonic() + LOOK_SECONDS, has_maps
        return has_maps

    async def _soon(
        self, key: tuple[int, *tuple[str, ...]], work: Callable[[], Coroutine[Any, Any, T]], seconds: float
    ) -> T | None:
        """The result if it is there in time; the work goes on, and the next call for it gets its result."""
        task: asyncio.Task[T] | None = self._tasks.get(key)
        if task is None:
            task = self._tasks[key] = asyncio.create_task(work())
            later = asyncio.get_running_loop().call_later
            task.add_done_callback(lambda _: later(KEEP_SECONDS, self._tasks.pop, key, None))
        done, _ = await asyncio.wait([task], timeout=seconds)
        if not done:
            return None
        self._tasks.pop(key, None)
        return task.result()

    async def _find_sources(self, project: int, issues: Sequence[str]) -> None:
        try:
            payloads = await self._reader.read(GetLastPayloads(project, issues))
        except ReadError:
            return
        for issue, payload in payloads.items():
            found = await self._resolve(project, payload)
            if len(self._sources) >= _MAX_KEPT:
                self._sources.clear()
            until = time.monotonic() + (KEEP_SECONDS if found.source else _MISSED_SECONDS)
            self._sources[project, issue] = until, found.source or NO_SOURCE

    async def _resolve(self, project: int, payload: bytes) -> Resolution:
        try:
            event = decode_sent(payload)
            links = await self._reader.read(FindArtifacts(project, event.release, event.names))
            maps, problems = by_map(event, links)
            found: Found = {}
            types: dict[str, str] = {}
            for one in maps:
                answer = await self._of_map(project, one, event.types)
                if isinstance(answer, Resolved):
                    found |= {
                        key: each for key, each in zip(one.positions, answer.frames, strict=True) if each
                    }
                    types |= {old: new for old, new in zip(event.types, answer.classes, strict=True) if new}
                else:
                    problems.append(f"{one.link.path}: {answer}")
        except msgspec.MsgspecError:
            return Resolution(None, ["the event can't be read"])
        except ReadError as error:
            return Resolution(None, [f"source maps can't be read now: {error}"])
        except ChangesUnavailable as error:
            return Resolution(None, [str(error)])
        resolved = resolved_error(payload, found, types) if found or types else None
        return Resolution(resolved, problems, source_of(event, found))

    async def _of_map(self, project: int, frames: MapFrames, types: list[str]) -> Resolved | str:
        """The frames of one map, or why there are none."""
        link = frames.link
        until, reason = self._failed.get(link.digest, (0.0, ""))
        if until > time.monotonic():
            return reason
        question = Resolve(link.digest, link.kind, list(frames.positions.values()), types)
        try:
            answer = await self._worker.ask(question)
            if isinstance(answer, ContentMissing):
                content = await self._reader.read(GetArtifact(project, link.digest))
                if not content:
                    return "its content is gone: upload it again"
                answer = await self._worker.ask(msgspec.structs.replace(question, content=content))
        except WorkerFailed as error:
            if len(self._failed) >= _MAX_FAILED:
                self._failed.clear()
            self._failed[link.digest] = time.monotonic() + KEEP_SECONDS, str(error)
            return str(error)
        if isinstance(answer, Resolved):
            return answer
        return answer.reason if isinstance(answer, NotUsable) else "it can't be read"
