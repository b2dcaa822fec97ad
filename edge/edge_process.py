"""One process of the edge: builds its parts and serves until it is stopped."""

import asyncio
import gc
import logging
import resource
import signal
import socket
import sys
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from aiohttp import web

from broker.rights import needs
from broker.startup import wait_for_rights
from edge.delivery.chunk_delivery import ChunkDelivery
from edge.delivery.chunker import Chunker, ChunkLimits
from edge.delivery.drain import drain_forever
from edge.delivery.kafka_sink import KafkaSink
from edge.delivery.outcome_reports import OutcomeReporter
from edge.delivery.publisher import EventPublisher
from edge.delivery.spool import Spool
from edge.delivery.status import Gauges, delivery_part, outcomes_part
from edge.delivery.worker_folder import WorkerFolder
from edge.edge_metrics import EdgeMetrics
from edge.http.body import BodyReader, body_times
from edge.http.edge_app import build_app
from edge.http.endpoints import Ingest
from edge.limits.body_budget import BodyBudget
from edge.limits.connections import ConnectionLimits, affordable, descriptors
from edge.limits.local_window import LocalWindow, RateLimiter
from edge.limits.refusal_throttle import RefusalThrottle
from edge.limits.remote_window import RemoteWindow
from edge.limits.scheduler import FairScheduler
from edge.project_snapshot import ProjectSnapshot
from schemas.health import Health, Part
from schemas.settings import EdgeSettings, PipelineSettings
from schemas.topics import Topic

log = logging.getLogger(__name__)

_MAX_READY_WAIT_SECONDS: Final = 5.0
"""Bounded, because without Kafka and known projects the health endpoints must report that."""
_READY_CHECKS: Final = 100
_SWITCH_SECONDS: Final = 0.001
"""How long the thread for large bodies may hold the GIL while the loop waits for it; a fifth of Python's default."""
_GC_THRESHOLDS: Final = (50_000, 20, 50)
"""A batch creates thousands of short-lived objects: Python's default thresholds would scan them some thirty times."""


class EdgeProcess:
    """The parts of one process. `start` requires a running event loop."""

    def __init__(self, settings: EdgeSettings, listener: socket.socket) -> None:
        self._settings = settings
        self._listener = listener
        self._root = Path(settings.data_dir) / "edge"
        self.health = Health(settings.instance)
        self._tasks: list[asyncio.Task[None]] = []
        self.failed = False

    async def start(self) -> None:
        """Lock a folder, connect, and listen."""
        settings = self._settings
        self._folder = WorkerFolder(self._root / "spool")
        self._folder.adopt_orphans()
        self._spool = Spool(
            self._folder.directory,
            settings.spool_max_bytes // settings.edge_workers,
            settings.spool_max_age_hours * 3600,
        )
        self._sink = KafkaSink(settings, settings.edge_send_deadline_seconds, self._fail)
        self._chunker = Chunker(ChunkDelivery(self._sink, self._spool).deliver, ChunkLimits())
        self._projects = ProjectSnapshot(self._root / "projects.json")
        self._outcomes = OutcomeReporter(self._sink, self._folder.directory / "outcomes.json")
        self._metrics = EdgeMetrics()
        self._limiter = self._rate_limiter()
        self._scheduler = FairScheduler()
        ingest = Ingest(
            projects=self._projects,
            limiter=self._limiter,
            publisher=EventPublisher(self._chunker, self._sink),
            metrics=self._metrics,
            outcomes=self._outcomes,
            bodies=BodyReader(body_times(settings)),
            body_budget=BodyBudget(settings.edge_body_bytes, settings.edge_token_body_bytes),
            throttle=RefusalThrottle(),
            scheduler=self._scheduler,
        )
        self.health.set("accepting", True)
        self.health.probe("projects", self._projects.health)
        self.health.probe("delivery", self._delivery_health)
        self.health.probe("outcomes", lambda: outcomes_part(self._sink.failures.get(Topic.OUTCOMES)))
        self.health.probe("spool", self._spool_health)
        await self._sink.start()
        self._spawn(self._projects.run(settings))
        self._spawn(drain_forever(self._spool, self._sink))
        self._spawn(self._outcomes.run())
        # It names missing rights, and works without them: it spools, or knows the projects of the snapshot.
        required = needs(PipelineSettings())["edge"]
        self._tasks.append(asyncio.create_task(wait_for_rights(settings, required)))
        connections = ConnectionLimits(
            affordable(settings.edge_connections, descriptors()), settings.edge_address_connections
        )
        self._spawn(Gauges(self._metrics, self._chunker, self._sink, self._spool, connections).run())
        self._runner = web.ServerRunner(
            build_app(ingest, self.health, self._metrics, connections, settings.edge_head_seconds),
            shutdown_timeout=settings.edge_stop_seconds,
        )
        await self._runner.setup()
        await self._wait_ready()
        await web.SockSite(self._runner, self._listener, backlog=1024).start()

    async def stop(self) -> None:
        """Report not ready, finish requests in flight, and flush everything."""
        self.health.set("accepting", False, "stopping")
        await asyncio.sleep(self._settings.edge_drain_seconds)
        for step in (
            self._runner.cleanup,
            self._chunker.stop,
            self._end_tasks,
            self._outcomes.stop,
            self._sink.stop,
            self._spool.stop,
            self._limiter.close,
        ):
            # Accepted events must reach Kafka or the disk: a failed step must not skip the next ones.
            try:
                await step()
            except Exception:
                log.exception("shutdown step failed", extra={"event": "shutdown_step_failed"})
                self.failed = True
        self._scheduler.shut_down()
        self._folder.release()

    async def _end_tasks(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _wait_ready(self) -> None:
        """Wait a short time until ready: a worker must not refuse events that its siblings would accept.

        Meanwhile the connections of a dead predecessor wait in its socket.
        """
        for _ in range(_READY_CHECKS):
            if self.health.ready:
                return
            await asyncio.sleep(_MAX_READY_WAIT_SECONDS / _READY_CHECKS)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        task.add_done_callback(self._ended)
        self._tasks.append(task)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Background tasks end only by an error: stop the process, since a new one is more likely to recover."""
        if not task.cancelled():
            self._fail(task.exception())

    def _fail(self, error: BaseException | None) -> None:
        log.critical("a part of the edge failed, stopping", exc_info=error, extra={"event": "edge_failed"})
        self.failed = True
        signal.raise_signal(signal.SIGTERM)

    def _rate_limiter(self) -> RateLimiter:
        local = LocalWindow(self._root / "rate-limit")
        store = self._settings.rate_limit_store
        return RemoteWindow(store, local, self._settings.rate_limit_store_seconds) if store else local

    def _delivery_health(self) -> Part:
        sink = self._sink
        return delivery_part(
            sink.failures.get(Topic.EVENTS),
            attempted=sink.attempted,
            has_delivered=sink.has_delivered,
            spool_full=self._spool.full,
            spool_bytes=self._spool.size,
        )

    def _spool_health(self) -> Part:
        size = self._spool.quarantined_bytes
        return Part(True, f"{size} bytes are quarantined: see `svc spool list`" if size else "")


async def serve(
    settings: EdgeSettings, listener: socket.socket, orphaned: socket.socket | None = None
) -> bool:
    """Serve until SIGTERM or SIGINT, or until the supervisor closes its end of `orphaned`. False if a part failed."""
    sys.setswitchinterval(_SWITCH_SECONDS)
    loop = asyncio.get_running_loop()
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    if orphaned is not None:
        loop.add_reader(orphaned, stopping.set)
    worker = EdgeProcess(settings, listener)
    await worker.start()
    # All objects created so far are permanent: exclude them from garbage collections.
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GC_THRESHOLDS)
    host, port = listener.getsockname()[:2]
    log.info("listening", extra={"event": "edge_started", "host": host, "port": port})
    await stopping.wait()
    await worker.stop()
    return not worker.failed


def raise_file_limit() -> None:
    """Raise the limit of file descriptors to its maximum: idle connections cost little else."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
