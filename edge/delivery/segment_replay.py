"""Replays quarantined segments (`svc spool replay`).

Events are sent as the drain sends them: in order, each to its partition, with the same headers. Once Kafka
has acknowledged all of a segment, it is removed, or marked as replayed if it contains unreadable bytes. An
interrupted replay starts again; events that are written twice are deduplicated downstream.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from broker.errors import SinkUnavailable
from broker.send_errors import SendErrorKind
from edge.delivery.drain import OpenedSegment, open_segment, send_all
from edge.delivery.kafka_sink import KafkaSink
from edge.delivery.quarantine import REPLAYED, is_replayed, quarantined_under, reason_of, segment_name
from edge.delivery.segments import created, sync_directory
from schemas.times import iso
from schemas.topics import Topic


class QuarantinedSegment(Struct, rename="camel", frozen=True, kw_only=True):
    """A quarantined segment.

    `unreadable` counts bytes without a valid record, including those of an unfinished write. `error` says why
    the file can't be read. `sent` and `too_large` count events; they are None unless the segment was just
    replayed.
    """

    file: str
    reason: str
    replayed: bool
    created_at: str
    bytes: int = 0
    events: int = 0
    unreadable: int = 0
    error: str | None = None
    sent: int | None = None
    too_large: int | None = None

    @property
    def is_done(self) -> bool:
        """Whether no event remains to be sent."""
        return self.replayed or (self.sent is not None and not self.too_large)


def listed(root: Path) -> list[QuarantinedSegment]:
    """The quarantined segments under the folder of the workers' spools."""
    return [_describe(path, _open(path)) for path in quarantined_under(root)]


async def replay(
    root: Path, sink: KafkaSink, patience: float, report: Callable[[QuarantinedSegment], None]
) -> None:
    """Send each segment that wasn't replayed yet, and report the result; the sink must be started.

    Raises SinkUnavailable if Kafka acknowledges nothing for `patience` seconds, or denies access.
    """
    for path in quarantined_under(root):
        if is_replayed(path):
            continue
        opened = await asyncio.to_thread(_open, path)
        if isinstance(opened, OSError):
            report(_describe(path, opened))
            continue
        too_large = await _send(opened, sink, patience)
        row = _describe(path, opened, sent=opened.events - too_large, too_large=too_large)
        if row.is_done:
            await asyncio.to_thread(_finish, path, opened)
        report(row)


async def _send(opened: OpenedSegment, sink: KafkaSink, patience: float) -> int:
    """Send a segment until it is acknowledged; returns the number of too large events. Raises SinkUnavailable."""
    while True:
        await _wait_connected(sink, patience)
        try:
            return await send_all(opened, sink)
        except SinkUnavailable:
            failure = sink.failures.get(Topic.EVENTS)
            if failure and (failure.kind is SendErrorKind.DENIED or sink.silent_seconds > patience):
                raise SinkUnavailable(failure.detail) from None


async def _wait_connected(sink: KafkaSink, patience: float) -> None:
    try:
        async with asyncio.timeout(patience):
            await sink.connected.wait()
    except TimeoutError:
        failure = sink.failures.get(Topic.EVENTS)
        raise SinkUnavailable(failure.detail if failure else "Kafka does not respond") from None


def _open(path: Path) -> OpenedSegment | OSError:
    try:
        return open_segment(path)
    except OSError as error:
        return error


def _describe(path: Path, opened: OpenedSegment | OSError, **done: Any) -> QuarantinedSegment:
    reason = reason_of(path)
    assert reason is not None
    segment = QuarantinedSegment(
        file=str(path),
        reason=reason.value,
        replayed=is_replayed(path),
        created_at=iso(int(created(segment_name(path)) * 1000)),
        **done,
    )
    if isinstance(opened, OSError):
        return replace(segment, error=opened.strerror or str(opened))
    return replace(
        segment,
        bytes=path.stat().st_size,
        events=opened.events,
        unreadable=opened.damaged + opened.unfinished,
    )


def _finish(path: Path, opened: OpenedSegment) -> None:
    # Another process may have replayed it concurrently.
    with suppress(FileNotFoundError):
        if opened.reason is None:
            path.unlink()
        else:
            path.rename(path.with_name(path.name + REPLAYED))
        sync_directory(path.parent)
