"""A child process as the supervisor sees it, and its end."""

import subprocess
from typing import Protocol


class RunningProcess(Protocol):
    """The part of `subprocess.Popen` that a supervisor needs."""

    @property
    def pid(self) -> int:
        """Its process id."""

    def poll(self) -> int | None:
        """Its exit status; None while it runs."""

    def terminate(self) -> None:
        """Ask it to end."""

    def kill(self) -> None:
        """Kill it, and the processes that it started and that are in its group."""

    def wait(self, timeout: float | None = None) -> int:
        """Its exit status, once it has ended. Raises subprocess.TimeoutExpired."""


def kill(process: RunningProcess) -> None:
    """Kill a process with its group, even one that has ended, and reap it."""
    process.kill()
    process.wait()


def end(process: RunningProcess, grace: float) -> bool:
    """Terminate a process; kill it after `grace` seconds; true if it stopped in time."""
    if process.poll() is None:
        process.terminate()
    return await_end(process, grace)


def await_end(process: RunningProcess, grace: float) -> bool:
    """Wait for the end of a terminated process; kill it after `grace` seconds; true if it stopped in time."""
    try:
        process.wait(grace)
    except subprocess.TimeoutExpired:
        return False
    finally:
        kill(process)
    return True
