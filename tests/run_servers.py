"""One broker and one database for a run: its controller starts them when the first worker asks, and stops them.

A worker asks by a file in a folder that they share, and reads the address from another one. Without workers
(`-n 0`) the session starts its servers itself, in `tests.servers`.
"""

import fcntl
import os
import resource
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack, suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any, Final

import pytest

Start = Callable[[Path], AbstractContextManager[str]]
"""Starts a server in a folder; gives its address, and stops it at the end."""

FOLDER: Final = "servers"
PREFIX: Final = "svc-servers-"
POLL_SECONDS: Final = 0.05
ASK_SECONDS: Final = 300


class RunServers:
    """A plugin of the controller. `starts` has a server by name."""

    def __init__(self, starts: Mapping[str, Start], memory: str | None) -> None:
        parent = Path(memory or tempfile.gettempdir())
        _remove_stale(parent)
        # It is locked before it gets the name by which others look for it.
        fresh = Path(tempfile.mkdtemp(prefix=f".{PREFIX}", dir=parent))
        _lock(fresh)
        self._folder = fresh.rename(parent / fresh.name[1:])
        self._ends = {name: Event() for name in starts}
        self._threads = {
            name: Thread(target=self._serve, args=(name, start)) for name, start in starts.items()
        }
        for thread in self._threads.values():
            thread.start()

    def pytest_configure(self) -> None:
        # The run ends as by Ctrl-C: its servers are stopped.
        signal.signal(signal.SIGTERM, signal.default_int_handler)

    # The name and the type are those of xdist's hook.
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput[FOLDER] = str(self._folder)

    def pytest_unconfigure(self) -> None:
        self.stop()

    def stop(self) -> dict[str, float]:
        """Stop the started servers; returns the CPU seconds of each, which is an ended child of ours now."""
        used = {}
        for name, thread in self._threads.items():
            before = ended_children()
            self._ends[name].set()
            thread.join()
            used[name] = ended_children() - before
        shutil.rmtree(self._folder, ignore_errors=True)
        return used

    def _serve(self, name: str, start: Start) -> None:
        while not (self._folder / f"{name}.asked").exists():
            if self._ends[name].wait(POLL_SECONDS):
                return
        with ExitStack() as stack:
            try:
                answer, text = "address", stack.enter_context(start(self._folder / name))
            except Exception as error:  # noqa: BLE001 - the tests that asked fail with it
                answer, text = "failed", repr(error)
            written = self._folder / f"{name}.written"
            written.write_text(text)
            written.rename(self._folder / f"{name}.{answer}")
            self._ends[name].wait()


def _lock(folder: Path) -> None:
    """Lock a folder as long as this process lives, by a descriptor that stays open. Raises OSError if it is locked."""
    fcntl.flock(os.open(folder, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)


def _remove_stale(parent: Path) -> None:
    """Remove what killed controllers left."""
    for folder in parent.glob(f"{PREFIX}*"):
        with suppress(OSError):
            _lock(folder)
            shutil.rmtree(folder)


def ended_children() -> float:
    """CPU seconds of the children of this process that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def shared_address(config: pytest.Config, name: str) -> str | None:
    """The address of the run's server; None where this is no worker. Raises RuntimeError if it did not start."""
    folder = getattr(config, "workerinput", {}).get(FOLDER)
    if folder is None:
        return None
    (Path(folder) / f"{name}.asked").touch()
    address, failed = Path(folder) / f"{name}.address", Path(folder) / f"{name}.failed"
    limit = time.monotonic() + ASK_SECONDS
    while not address.exists():
        if failed.exists():
            raise RuntimeError(f"{name} did not start: {failed.read_text()}")
        if time.monotonic() > limit:
            raise RuntimeError(f"the run's {name} was not ready after {ASK_SECONDS} s")
        time.sleep(POLL_SECONDS)
    return address.read_text()
