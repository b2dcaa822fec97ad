"""Sends again what stands in segments that were set aside (`svc spool replay`).

A segment goes the way of the drain: events in their order, each to its partition, with the drain's headers. It is removed, or marked
where bytes are left that nobody can read, once Kafka has acknowledged all of it; a replay that is killed is begun again.
What the drain has sent already is written once more and dropped downstream by its ids.
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
from edge.delivery.drain import Opened, open_segment, send_all
from edge.delivery.kafka_sink import KafkaSink
from edge.delivery.quarantine import REPLAYED, found_under, is_replayed, reason_of, segment_name
from edge.delivery.segments import created, sync_directory
from schemas.times import iso
from schemas.topics import Topic


class QuarantinedSegment(Struct, rename="camel", frozen=True, kw_only=True):
    """A segment that was set aside. `unreadable` are bytes that hold no record, those of an unfinished write included.

    `error` says why it can't be read at all. `sent` and `too_large` are events; they are None where it wasn't replayed.
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
        """Whether nothing of it is left to be sent."""
        return self.replayed or (self.sent is not None and not self.too_large)


def listed(root: Path) -> list[QuarantinedSegment]:
    """What was set aside under the folder of the workers' spools."""
    return [_described(path, _opened(path)) for path in found_under(root)]


async def replay(
    root: Path, sink: KafkaSink, patience: float, report: Callable[[QuarantinedSegment], None]
) -> None:
    """Send each segment that was not replayed yet, and report what became of it; the sink is started.

    Raises SinkUnavailable where Kafka takes nothing for `patience` seconds, or denies access.
    """
    for path in found_under(root):
        if is_replayed(path):
            continue
        opened = await asyncio.to_thread(_opened, path)
        if isinstance(opened, OSError):
            report(_described(path, opened))
            continue
        too_large = await _sent(opened, sink, patience)
        row = _described(path, opened, sent=opened.events - too_large, too_large=too_large)
        if row.is_done:
            await asyncio.to_thread(_let_go, path, opened)
        report(row)


async def _sent(opened: Opened, sink: KafkaSink, patience: float) -> int:
    """Send a segment until it is acknowledged; the number of its events that are too large. Raises SinkUnavailable."""
    while True:
        await _up(sink, patience)
        try:
            return await send_all(opened, sink)
        except SinkUnavailable:
            failure = sink.failures.get(Topic.EVENTS)
            if failure and (failure.kind is SendErrorKind.DENIED or sink.silent_seconds > patience):
                raise SinkUnavailable(failure.detail) from None


async def _up(sink: KafkaSink, patience: float) -> None:
    try:
        async with asyncio.timeout(patience):
            await sink.connected.wait()
    except TimeoutError:
        failure = sink.failures.get(Topic.EVENTS)
        raise SinkUnavailable(failure.detail if failure else "Kafka does not answer") from None


def _opened(path: Path) -> Opened | OSError:
    try:
        return open_segment(path)
    except OSError as error:
        return error


def _described(path: Path, opened: Opened | OSError, **done: Any) -> QuarantinedSegment:
    reason = reason_of(path)
    assert reason is not None
    found = QuarantinedSegment(
        file=str(path),
        reason=reason.value,
        replayed=is_replayed(path),
        created_at=iso(int(created(segment_name(path)) * 1000)),
        **done,
    )
    if isinstance(opened, OSError):
        return replace(found, error=opened.strerror or str(opened))
    return replace(
        found,
        bytes=path.stat().st_size,
        events=opened.events,
        unreadable=opened.damaged + opened.unfinished,
    )


def _let_go(path: Path, opened: Opened) -> None:
    # Somebody else may have replayed it meanwhile.
    with suppress(FileNotFoundError):
        if opened.reason is None:
            path.unlink()
        else:
            path.rename(path.with_name(path.name + REPLAYED))
        sync_directory(path.parent)
