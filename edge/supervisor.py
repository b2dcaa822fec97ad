"""Runs several workers on one port, each with its own socket (SO_REUSEPORT), and replaces dead ones.

No other edge may share the port, so the address is claimed before the first socket is bound. The supervisor holds the
sockets: the successor of a dead worker serves the connections that wait in its socket.
"""

import logging
import multiprocessing
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Final

from broker import event_loop
from edge.address import PATIENCE_SECONDS, claim, new_listener
from edge.metrics import MULTIPROCESS
from edge.process import raise_file_limit, serve
from runtime.memory import trim_in_background
from schemas.errors import CannotRun
from schemas.settings import EdgeSettings

log = logging.getLogger(__name__)

_MEMORY: Final = Path("/dev/shm")  # noqa: S108  # mkdtemp creates a folder in it for this user only
_MIN_RESTART_SECONDS: Final = 0.5
"""Minimum time between two starts of a worker: a worker that can't start must not use up the CPU."""


def run(settings: EdgeSettings, configure_logs: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT with the configured number of processes; the others configure their log. Raises CannotRun."""
    raise_file_limit()
    folder = Path(settings.data_dir) / "edge"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise CannotRun(f"SVC_DATA_DIR: can't write to {folder}: {error.strerror}") from None
    claimed, listener = open_address(settings.ingest_host, settings.ingest_port)
    with claimed:
        if settings.edge_workers == 1:
            _exit(event_loop.run(serve(settings, listener)))
        else:
            _Supervisor(settings, listener, configure_logs).run()


def open_address(
    host: str, port: int, patience: float = PATIENCE_SECONDS
) -> tuple[socket.socket, socket.socket]:
    """A claim on the address, to be kept open, and the first listener. Raises CannotRun."""
    try:
        claimed = claim(host, port, patience)
        return claimed, new_listener(host, claimed.getsockname()[1], shared=True)
    except OSError as error:
        raise CannotRun(f"can't listen on {host}:{port}: {error.strerror or error}") from None


class _Supervisor:
    def __init__(
        self, settings: EdgeSettings, first: socket.socket, configure_logs: Callable[[str], None]
    ) -> None:
        self._settings = settings
        self._configure_logs = configure_logs
        host, port = first.getsockname()[:2]
        others = [new_listener(host, port, shared=True) for _ in range(settings.edge_workers - 1)]
        self._listeners = [first, *others]
        self._workers: list[BaseProcess] = []
        self._started: list[float] = []
        # The workers' end is closed when this process dies in any way.
        self._tether, self._workers_end = socket.socketpair()
        self._woken, self._waker = socket.socketpair()
        self._stopping = False

    def run(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        registry = Path(self._settings.data_dir) / "edge" / "metrics"
        directory = create_metrics_folder(registry)
        os.environ[MULTIPROCESS] = str(directory)
        try:
            for listener in self._listeners:
                self._workers.append(self._start(listener))
                self._started.append(time.monotonic())
            while not self._stopping:
                self._watch()
            self._end()
        finally:
            del os.environ[MULTIPROCESS]
            shutil.rmtree(directory, ignore_errors=True)
            remove_stale_metrics(registry)

    def _start(self, listener: socket.socket) -> BaseProcess:
        context = multiprocessing.get_context("spawn")
        worker = context.Process(
            target=_work,
            args=(self._settings, listener, self._workers_end, self._configure_logs),
            daemon=False,
        )
        worker.start()
        return worker

    def _watch(self) -> None:
        wait([self._woken, *(worker.sentinel for worker in self._workers)])
        for index, worker in enumerate(self._workers):
            if self._stopping or worker.is_alive():
                continue
            log.warning("worker died, replacing it", extra={"died": worker.pid, "exit_code": worker.exitcode})
            _remove_gauges(worker.pid)
            time.sleep(max(0.0, self._started[index] + _MIN_RESTART_SECONDS - time.monotonic()))
            self._workers[index] = self._start(self._listeners[index])
            self._started[index] = time.monotonic()

    def _end(self) -> None:
        for listener in self._listeners:
            listener.close()
        for worker in self._workers:
            worker.terminate()
        timeout = self._settings.edge_drain_seconds + 2 * self._settings.edge_stop_seconds + 5
        end = time.monotonic() + timeout
        for worker in self._workers:
            worker.join(max(0.0, end - time.monotonic()))
            if worker.is_alive():
                log.warning("worker does not stop, killing it", extra={"killed": worker.pid})
                worker.kill()
                worker.join()

    def _stop(self, *_: object) -> None:
        self._stopping = True
        self._waker.send(b"x")


def _work(
    settings: EdgeSettings,
    listener: socket.socket,
    tether: socket.socket,
    configure_logs: Callable[[str], None],
) -> None:
    configure_logs(settings.log_level)
    trim_in_background(collect=True)
    raise_file_limit()
    _exit(event_loop.run(serve(settings, listener, tether)))


def _exit(succeeded: bool) -> None:
    if not succeeded:
        sys.exit(1)


def _remove_gauges(pid: int | None) -> None:
    """Remove a dead worker's gauges; its counters remain in the sums."""
    from prometheus_client.multiprocess import mark_process_dead

    mark_process_dead(pid)  # type: ignore[no-untyped-call]


def create_metrics_folder(registry: Path, memory: Path = _MEMORY) -> Path:
    """Create a folder for the workers' metrics, in memory if possible, and link it in `registry`. Raises OSError.

    Metrics are sparse mapped files: on a full disk, the first metric that needs a page kills its worker.
    """
    remove_stale_metrics(registry)
    entry = registry / str(os.getpid())
    try:
        directory = Path(tempfile.mkdtemp(prefix="svc-edge-", dir=memory))
    except OSError:
        entry.mkdir(parents=True)
        return entry
    # Without the link, on a full disk, the folder only remains after a kill.
    with suppress(OSError):
        registry.mkdir(parents=True, exist_ok=True)
        entry.symlink_to(directory)
    return directory


def remove_stale_metrics(registry: Path) -> None:
    """Remove the metrics of ended supervisors, and those of this process's id: containers reuse ids."""
    for entry in registry.glob("*"):
        if entry.name == str(os.getpid()) or not Path(f"/proc/{entry.name}").exists():
            shutil.rmtree(entry.resolve(), ignore_errors=True)
            if entry.is_symlink():
                with suppress(OSError):
                    entry.unlink()
