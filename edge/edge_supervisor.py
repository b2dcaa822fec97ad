"""Runs several workers on one port, each with its own socket (SO_REUSEPORT), and replaces dead ones.

No other edge may share the port, so the address is claimed before the first socket is bound. The supervisor holds the
sockets: the successor of a dead worker serves the connections that wait in its socket.
"""

import asyncio
import logging
import multiprocessing
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Final

from broker import event_loop
from edge.address import PATIENCE_SECONDS, claim, new_listener
from edge.edge_metrics import MULTIPROCESS
from edge.edge_process import raise_file_limit, serve
from runtime.memory import trim_in_background
from runtime.supervisor import Status, Supervisor
from schemas.addresses import host_port
from schemas.errors import CannotRun
from schemas.settings import EdgeSettings

log = logging.getLogger(__name__)

_MEMORY: Final = Path("/dev/shm")  # noqa: S108  # mkdtemp creates a folder in it for this user only
_RESTART_SECONDS: Final = (0.0, 0.5)
"""The first restart is immediate; the next ones wait, because a worker that can't start must not use up the CPU."""


def run_edge(settings: EdgeSettings, configure_logs: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT with the configured number of processes.

    If there are several, each worker calls `configure_logs`. Raises CannotRun.
    """
    raise_file_limit()
    # Its files contain tokens and events.
    os.umask(0o077)
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
            with _metrics_folder(folder / "metrics"):
                asyncio.run(_supervise(settings, listener, configure_logs))


def open_address(
    host: str, port: int, patience: float = PATIENCE_SECONDS
) -> tuple[socket.socket, socket.socket]:
    """A claim on the address, to be kept open, and the first listener. Raises CannotRun."""
    try:
        claimed = claim(host, port, patience)
        return claimed, new_listener(host, claimed.getsockname()[1], shared=True)
    except OSError as error:
        raise CannotRun(f"can't listen on {host_port(host, port)}: {error.strerror or error}") from None


async def _supervise(
    settings: EdgeSettings, first: socket.socket, configure_logs: Callable[[str], None]
) -> None:
    """Run the workers until SIGTERM or SIGINT. A second signal doesn't hurry them: they finish their requests."""
    host, port = first.getsockname()[:2]
    others = [new_listener(host, port, shared=True) for _ in range(settings.edge_workers - 1)]
    listeners = [first, *others]
    # The workers' end is closed when this process dies in any way.
    tether, workers_end = socket.socketpair()
    workers = [
        _Worker(
            f"worker {number}",
            (settings, listener, workers_end, configure_logs),
            grace_seconds=settings.edge_drain_seconds + 2 * settings.edge_stop_seconds + 5,
        )
        for number, listener in enumerate(listeners)
    ]
    supervisor = Supervisor(workers, _log_kill, _clean_up, restart_seconds=_RESTART_SECONDS, together=True)
    loop = asyncio.get_running_loop()
    for stop in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(stop, supervisor.stopping.set)
    with tether:
        try:
            await supervisor.start()
            await supervisor.stopping.wait()
        finally:
            for listener in listeners:
                listener.close()
            await supervisor.stop()


@dataclass(frozen=True)
class _Worker:
    """A worker; see `runtime.supervisor.Supervised`.

    It counts as ready once it runs: connections wait in its socket.
    """

    name: str
    arguments: tuple[EdgeSettings, socket.socket, socket.socket, Callable[[str], None]]
    """Those of `_work`."""
    grace_seconds: float
    ready: Callable[[], bool] = lambda: True
    once: bool = False
    start_seconds: float = 0.0
    progress: Callable[[], str] = str

    def prepare(self) -> "Callable[[], _WorkerProcess]":
        """Starts the worker's process."""
        return self._start

    def _start(self) -> "_WorkerProcess":
        process = multiprocessing.get_context("spawn").Process(
            target=_work, args=self.arguments, daemon=False
        )
        # Python would look for modules in the current folder first, and the folder is not ours.
        os.environ["PYTHONSAFEPATH"] = "1"
        process.start()
        return _WorkerProcess(process)

    def failed(self, problem: str) -> CannotRun:
        """The error of a start that failed."""
        return CannotRun(f"{self.name} {problem}")


class _WorkerProcess:
    """A process of `multiprocessing` as a `runtime.process.RunningProcess`."""

    def __init__(self, process: BaseProcess) -> None:
        assert process.pid is not None
        self._process, self.pid = process, process.pid
        self.terminate, self.kill = process.terminate, process.kill

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if (status := self._process.exitcode) is None:
            raise subprocess.TimeoutExpired(f"worker {self.pid}", timeout or 0.0)
        return status


def _log_kill(status: Status) -> None:
    if status.state == "stopped" and status.detail:
        log.warning(
            "worker did not stop in time, killed it",
            extra={"event": "edge_worker_killed", "worker": status.name, "ended": status.detail},
        )


def _clean_up(pid: int, exit_code: int) -> None:
    """Remove a dead worker's gauges; its counters remain in the sums."""
    from prometheus_client.multiprocess import mark_process_dead

    log.warning(
        "worker died, replacing it", extra={"event": "edge_worker_died", "died": pid, "exit_code": exit_code}
    )
    mark_process_dead(pid)  # type: ignore[no-untyped-call]


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


@contextmanager
def _metrics_folder(registry: Path) -> Iterator[None]:
    """The folder of the workers' metrics, which they find by the environment."""
    directory = create_metrics_folder(registry)
    os.environ[MULTIPROCESS] = str(directory)
    try:
        yield
    finally:
        del os.environ[MULTIPROCESS]
        shutil.rmtree(directory, ignore_errors=True)
        remove_stale_metrics(registry)


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
