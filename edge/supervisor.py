"""Several workers on one port: each has a socket of its own (SO_REUSEPORT), and one that dies is replaced.

No other edge may share the port: the address is claimed before the first socket is bound.

The supervisor keeps the sockets, so that connections which wait for a dead worker are served by its successor.
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
from broker.log_throttle import repeat_rarely
from edge.address import PATIENCE_SECONDS, claim, new_listener
from edge.metrics import MULTIPROCESS
from edge.process import raise_file_limit, serve
from schemas.errors import CannotRun
from schemas.payload import use_dictionaries
from schemas.settings import EdgeSettings

log = logging.getLogger(__name__)

_MEMORY: Final = Path("/dev/shm")  # noqa: S108  # the folder in it is made by mkdtemp, for this user alone
_REPLACE_SECONDS: Final = 0.5
"""Least time between two starts in one place: a worker that can't start must not burn the machine."""


def run(settings: EdgeSettings, configure_logs: Callable[[str], None]) -> None:
    """Serve until SIGTERM or SIGINT, with as many processes as the settings say; each configures its log. Raises CannotRun."""
    configure_logs(settings.log_level)
    repeat_rarely()
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
    """A claim on the address, to be kept, and a first listener. Raises CannotRun."""
    try:
        claimed = claim(host, port, patience)
        return claimed, new_listener(host, port, shared=True)
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
        # Workers see their end close when this process dies, however it dies.
        self._tether, self._workers_end = socket.socketpair()
        self._woken, self._waker = socket.socketpair()
        self._stopping = False

    def run(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        known = Path(self._settings.data_dir) / "edge" / "metrics"
        directory = folder_of_figures(known)
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
            sweep(known)

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
        for place, worker in enumerate(self._workers):
            if self._stopping or worker.is_alive():
                continue
            log.warning(
                "a worker died and is replaced", extra={"died": worker.pid, "exit_code": worker.exitcode}
            )
            _forget(worker.pid)
            time.sleep(max(0.0, self._started[place] + _REPLACE_SECONDS - time.monotonic()))
            self._workers[place] = self._start(self._listeners[place])
            self._started[place] = time.monotonic()

    def _end(self) -> None:
        for listener in self._listeners:
            listener.close()
        for worker in self._workers:
            worker.terminate()
        patience = self._settings.edge_drain_seconds + 2 * self._settings.edge_stop_seconds + 5
        end = time.monotonic() + patience
        for worker in self._workers:
            worker.join(max(0.0, end - time.monotonic()))
            if worker.is_alive():
                log.warning("a worker does not end and is killed", extra={"killed": worker.pid})
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
    use_dictionaries(settings.payload_dictionaries)
    repeat_rarely()
    raise_file_limit()
    _exit(event_loop.run(serve(settings, listener, tether)))


def _exit(succeeded: bool) -> None:
    if not succeeded:
        sys.exit(1)


def _forget(pid: int | None) -> None:
    """A dead worker's gauges are no longer true; its counters stay in the sums."""
    from prometheus_client.multiprocess import mark_process_dead

    mark_process_dead(pid)  # type: ignore[no-untyped-call]


def folder_of_figures(known: Path, memory: Path = _MEMORY) -> Path:
    """A fresh folder for the workers' figures, in memory where it can be, entered into `known`. Raises OSError.

    The figures are mapped files with holes: on a disk that is full, the first figure that needs a page ends its worker.
    """
    sweep(known)
    entry = known / str(os.getpid())
    try:
        directory = Path(tempfile.mkdtemp(prefix="svc-edge-", dir=memory))
    except OSError:
        entry.mkdir(parents=True)
        return entry
    # Without the entry, on a full disk, only a kill leaves the folder behind.
    with suppress(OSError):
        known.mkdir(parents=True, exist_ok=True)
        entry.symlink_to(directory)
    return directory


def sweep(known: Path) -> None:
    """Remove figures of supervisors that are no more, and those of this process's own number: in a container it comes again."""
    for entry in known.glob("*"):
        if entry.name == str(os.getpid()) or not Path(f"/proc/{entry.name}").exists():
            shutil.rmtree(entry.resolve(), ignore_errors=True)
            if entry.is_symlink():
                with suppress(OSError):
                    entry.unlink()
