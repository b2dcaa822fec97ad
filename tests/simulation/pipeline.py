"""The product's own parts as processes of a world: edge and writer; the processors are in `tests.simulation.worker`.

Nothing of a decision is repeated here: spool, drain, stages, inserter and the clients' wrappers are the product's.
"""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, Self

from edge.delivery.chunk_delivery import ChunkDelivery
from edge.delivery.chunker import Chunker, ChunkLimits
from edge.delivery.drain import drain_forever
from edge.delivery.kafka_sink import KafkaSink
from edge.delivery.publisher import EventPublisher
from edge.delivery.spool import Spool
from schemas.health import Health
from schemas.projects import Project
from schemas.settings import EdgeSettings, WriterSettings
from storage.shards import shards_of
from storage.write.block_inserter import BlockInserter
from storage.write.events_stage import EventsStage
from storage.write.flush_policy import FlushPolicy
from storage.write.inserter import Inserter
from storage.write.records_stage import RecordsStage
from storage.write.rejected_records import DeadLetterWriter
from storage.write.source import GroupedSource
from tests.simulation.virtual_time import VirtualLoop
from tests.simulation.world import World

ValidEvent = tuple[str, bytes]
CHUNK_EVENTS: Final = 300
BLOCK_ROWS: Final = 20_000


class Unmeasured:
    """Metrics without effect: every metric, and the metric of every label."""

    def __getattr__(self, name: str) -> Any:
        self.__dict__[name] = self
        return self

    def labels(self, *_: str) -> Self:
        """A metric."""
        return self

    def _keep(self, *_: float) -> None:
        """A value."""

    inc = set = observe = forget = _keep


METRICS: Final[Any] = Unmeasured()


class Refused(Exception):
    """The edge answers 503, or doesn't answer."""


def running(world: World, main: Callable[[], Any]) -> Callable[[], None]:
    """A process's main function that runs a coroutine in a new loop."""

    def run() -> None:
        loop = VirtualLoop(world)
        asyncio.set_event_loop(loop)
        loop.run_until_complete(main())

    return run


class Edge:
    """One edge process; `post` is called by a client outside of it."""

    def __init__(self, world: World, settings: EdgeSettings, folder: Path) -> None:
        self._world = world
        self._settings = settings
        self._folder = folder
        self._loop: VirtualLoop | None = None
        self._publisher: EventPublisher | None = None

    async def run(self) -> None:
        """Accept events until killed."""
        sink = KafkaSink(self._settings, self._settings.edge_send_deadline_seconds, explain=lambda _: None)
        spool = Spool(self._folder, 1 << 20, 72 * 3600.0)
        chunker = Chunker(ChunkDelivery(sink, spool).deliver, ChunkLimits(events=CHUNK_EVENTS))
        await sink.start()
        self._publisher = EventPublisher(chunker, sink)
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        self._loop = loop
        await drain_forever(spool, sink)

    def post(self, project: Project, events: Sequence[ValidEvent], answered: Callable[[bool], None]) -> None:
        """A client's request; `answered` is called with whether it was accepted, unless the process dies before."""
        loop, publisher = self._loop, self._publisher
        if loop is None or publisher is None:
            answered(False)
            return

        async def handle() -> None:
            try:
                chunks = publisher.put(project, "sdk/1", events)
                await publisher.wait_stored(chunks)
            except Exception:  # noqa: BLE001 - 503
                answered(False)
            else:
                answered(True)

        loop.deliver(lambda: loop.create_task(handle()))


class Writer:
    """One writer."""

    def __init__(self, settings: WriterSettings) -> None:
        self._settings = settings

    async def run(self) -> None:
        """As `storage.write.writer_process.run_writer`."""
        settings, health, metrics = self._settings, Health(), METRICS
        policy = FlushPolicy(block_rows=BLOCK_ROWS, block_bytes=1 << 26, quiet_seconds=0.2, wait_seconds=1.0)
        dead_letters = DeadLetterWriter(settings, metrics)
        source = GroupedSource(settings)
        shards = shards_of(settings)
        events, issues = (
            [Inserter(shard.url, shard.named(part), health, metrics) for shard in shards]
            for part in ("events", "issues")
        )
        block_inserters = [BlockInserter(one, dead_letters, source.topic, metrics) for one in events]
        of_shards = list(zip(shards, block_inserters, strict=True))
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(EventsStage(source, of_shards, policy, health, metrics).run())
            for shard, inserter in zip(shards, issues, strict=True):
                records = RecordsStage(settings, shard, inserter, dead_letters, policy, health, metrics)
                tasks.create_task(records.run())
