"""A local server as a child process: start, stop, kill."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Self

from local.local_errors import StartError
from local.process_groups import ProcessGroup, await_ready, spawn
from runtime.process import end, kill

_STOP_SECONDS = 30.0


class LocalServer(ABC):
    """A server whose files live in `directory`.

    All methods block; call them with `asyncio.to_thread` from a loop. The server dies with this process.
    """

    def __init__(self, name: str, directory: Path, log: Path) -> None:
        self.directory = directory.resolve()
        self.log = log
        self._name = name
        self._process: ProcessGroup | None = None

    @abstractmethod
    def prepare(self) -> list[str]:
        """Prepare a start; return the command that runs the server."""

    @abstractmethod
    def ready(self) -> bool:
        """True when the server answers and is ours."""

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process and self._process.poll() is None else None

    def start(self, timeout: float = 60) -> Self:
        """Start the server and wait until it is ready. Raises StartError and the errors of `prepare`."""
        self._process = spawn(self.prepare(), log=self.log, cwd=self.directory)
        try:
            await_ready(self._name, self._process, self.ready, self.log, timeout, self.directory)
        except StartError:
            self.kill()
            raise
        return self

    def stop(self) -> None:
        """Stop the server; kill it if it takes too long."""
        if self._process:
            end(self._process, _STOP_SECONDS)

    def kill(self) -> None:
        """Kill the server without a shutdown; its data stays as it is."""
        if self._process:
            kill(self._process)
