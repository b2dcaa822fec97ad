"""The agents: each passes batches to its stage and acknowledges them once their outputs are safe."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, cast

from faust.streams import Stream
from faust.types import EventT, StreamT

from processors.aggregator.aggregator_stage import AggregatorStage
from processors.faust_app.fence import Interrupted, RebalanceFence
from processors.faust_app.patches import arrivals
from processors.grouper.grouper_stage import GrouperStage
from processors.positions import SourceRecord

IDLE_FACTOR: Final = 10.0
"""Idle time after a batch, in multiples of the batch's duration: the next one is larger."""


class Agent:
    """One agent. It acknowledges strictly in order, and no record that it dropped.

    A batch ends after `max_records` or `seconds`; `idle_seconds` bounds the idle time after it.
    """

    def __init__(
        self,
        name: str,
        stage: GrouperStage | AggregatorStage,
        fence: RebalanceFence,
        *,
        max_records: int,
        seconds: float,
        idle_seconds: float = 0.0,
    ) -> None:
        self.name = name
        self._stage = stage
        self._fence = fence
        self._max_records = max_records
        self._seconds = seconds
        self._idle_seconds = idle_seconds

    def function(self, generation: Callable[[], int]) -> Callable[[StreamT[Any]], Awaitable[None]]:
        """The function that Faust runs; `generation` returns the group's generation as the worker knows it."""

        async def handle(stream: StreamT[Any]) -> None:
            source = cast(Stream[Any], stream)
            arrived = arrivals(source)
            async for events in source.noack_take(self._max_records, within=self._seconds):
                # Later arrivals wait until the batch is handled, and set it again.
                arrived.clear()
                await self._handle(events, generation())

        handle.__name__ = self.name
        return handle

    async def _handle(self, events: Sequence[EventT[Any]], generation: int) -> None:
        held = self._stage.partitions if self._fence.open else set()
        owned = [e for e in events if e.message.partition in held and e.message.generation_id == generation]
        if not owned:
            return
        started = time.perf_counter()
        with self._fence.batch():
            try:
                await self._stage.handle_batch(_by_partition(owned))
            except Interrupted:
                return
            for event in owned:
                event.ack()
        if self._idle_seconds:
            await asyncio.sleep(min(self._idle_seconds, IDLE_FACTOR * (time.perf_counter() - started)))


def _by_partition(events: Sequence[EventT[Any]]) -> dict[int, list[SourceRecord]]:
    by_partition: dict[int, list[SourceRecord]] = {}
    for event in events:
        message = event.message
        by_partition.setdefault(message.partition, []).append(
            SourceRecord(
                message.offset,
                round((message.timestamp or 0.0) * 1000),
                message.key,
                message.value or b"",
                _headers(message.headers),
            )
        )
    return by_partition


def _headers(headers: Any) -> list[tuple[str, bytes]]:
    return list(headers.items() if isinstance(headers, Mapping) else headers or ())
