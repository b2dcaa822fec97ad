"""The agents: a loop each that hands takes to its worker and acknowledges them once they are safe."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Protocol, cast

from faust.streams import Stream
from faust.types import EventT, StreamT

from processors.faust_app.fence import RebalanceFence
from processors.metrics import ProcessorsMetrics
from processors.positions import SourceRecord

IDLE_FACTOR: Final = 4.0
"""How long an agent rests after a take, in multiples of the take's own time, so that the next one is worth more."""


class Stage(Protocol):
    """What handles takes."""

    @property
    def partitions(self) -> set[int]:
        """The partitions that are held."""
        ...

    async def handle_batch(self, by_partition: Mapping[int, Sequence[SourceRecord]]) -> None:
        """Handle records; on return they are safe."""
        ...


class Agent:
    """One agent. It acknowledges strictly in order, and nothing that it dropped.

    `most` records or `seconds` make a take; `idle_seconds` bounds the rest after it.
    """

    def __init__(
        self,
        stage: str,
        worker: Stage,
        gate: RebalanceFence,
        metrics: ProcessorsMetrics,
        *,
        most: int,
        seconds: float,
        idle_seconds: float = 0.0,
    ) -> None:
        self.stage = stage
        self._worker = worker
        self._gate = gate
        self._metrics = metrics
        self._most = most
        self._seconds = seconds
        self._idle_seconds = idle_seconds

    def function(self, generation: Callable[[], int]) -> Callable[[StreamT[Any]], Awaitable[None]]:
        """The function that Faust runs; `generation` is that of the group as the worker knows it."""

        async def handle(stream: StreamT[Any]) -> None:
            async for events in cast(Stream[Any], stream).noack_take(self._most, within=self._seconds):
                await self._handle(events, generation())

        handle.__name__ = self.stage
        return handle

    async def _handle(self, events: Sequence[EventT[Any]], generation: int) -> None:
        held = self._worker.partitions if self._gate.open else set()
        mine = [e for e in events if e.message.partition in held and e.message.generation_id == generation]
        self._metrics.stale.labels(self.stage).inc(len(events) - len(mine))
        if not mine:
            return
        started = time.perf_counter()
        with self._gate.passing():
            await self._worker.handle_batch(_by_partition(mine))
            for event in mine:
                event.ack()
        taken = time.perf_counter() - started
        self._metrics.batches.labels(self.stage).inc()
        self._metrics.batch_seconds.labels(self.stage).inc(taken)
        if self._idle_seconds:
            await asyncio.sleep(min(self._idle_seconds, IDLE_FACTOR * taken))


def _by_partition(events: Sequence[EventT[Any]]) -> dict[int, list[SourceRecord]]:
    found: dict[int, list[SourceRecord]] = {}
    for event in events:
        message = event.message
        found.setdefault(message.partition, []).append(
            SourceRecord(
                message.offset,
                round((message.timestamp or 0.0) * 1000),
                message.key,
                message.value or b"",
                _headers(message.headers),
            )
        )
    return found


def _headers(headers: Any) -> list[tuple[str, bytes]]:
    return list(headers.items() if isinstance(headers, Mapping) else headers or ())
