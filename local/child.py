"""A child of `svc up`: a command with its log, and its readiness check."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from local.local_errors import StartError
from local.process_groups import ProcessGroup, failed_start, spawn


@dataclass(frozen=True)
class Child:
    """A program that a supervisor runs; see `runtime.supervisor.Supervised`.

    `command` is called in a thread before each start, may do preparations, and returns the argument vector.
    `data` is the program's data folder. `nice` lowers its priority.
    """

    name: str
    command: Callable[[], Sequence[str]]
    log: Path
    ready: Callable[[], bool] = lambda: True
    env: Mapping[str, str] | None = None
    once: bool = False
    start_seconds: float = 60.0
    progress: Callable[[], str] = str
    grace_seconds: float = 30.0
    data: Path | None = None
    nice: int = 0

    def prepare(self) -> Callable[[], ProcessGroup]:
        """Prepare the start; the function starts the program."""
        return partial(spawn, self.command(), log=self.log, env=self.env, nice=self.nice)

    def failed(self, what: str) -> StartError:
        """The error of a start that failed: a full disk, or `what` with the end of the log."""
        return failed_start(self.name, what, self.log, self.data)
