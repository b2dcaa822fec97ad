"""The agents: a loop each that hands takes to its worker and acknowledges them once they are safe."""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

from faust.types import EventT, StreamT

from processors.gate import Gate
from processors.metrics import Metrics
from processors.take import Source


class Worker(Protocol):
    """What handles takes."""

    @property
    def partitions(self) -> set[int]:
        """The partitions that are held."""
        ...

    async def take(self, by_partition: Mapping[int, Sequence[Source]]) -> None:
        """Handle records; on return they are safe."""
        ...


def agent(
    stage: str, worker: Worker, gate: Gate, metrics: Metrics, generation: Callable[[], int], most: int, seconds: float
) -> Callable[[StreamT[Any]], Awaitable[None]]:
    """An agent function for Faust. It acknowledges strictly in order, and nothing that it dropped."""

    async def handle(stream: StreamT[Any]) -> None:
        async for events in stream.noack_take(most, within=seconds):
            if not gate.open:
                metrics.stale.labels(stage).inc(len(events))
                continue
            mine = [event for event in events if event.message.generation_id == generation()]
            metrics.stale.labels(stage).inc(len(events) - len(mine))
            started = time.perf_counter()
            with gate.passing():
                await worker.take(_by_partition(mine, worker.partitions))
                for event in mine:
                    event.ack()
            metrics.takes.labels(stage).inc()
            metrics.take_seconds.labels(stage).inc(time.perf_counter() - started)

    handle.__name__ = stage
    return handle


def _by_partition(events: Sequence[EventT], held: set[int]) -> dict[int, list[Source]]:
    found: dict[int, list[Source]] = {}
    for event in events:
        message = event.message
        if message.partition in held:
            source = Source(
                message.offset,
                round(message.timestamp * 1000),
                message.key,
                message.value or b"",
                list((message.headers or {}).items()) if isinstance(message.headers, dict) else list(message.headers or ()),
            )
            found.setdefault(message.partition, []).append(source)
    return found
