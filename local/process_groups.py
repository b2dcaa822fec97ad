"""Child processes: started in their own group, with a log file, tied to this process, killed with their group."""

import contextlib
import functools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from local.disk_space import full_disk_error
from local.local_errors import StartError

TETHER = Path(__file__).with_name("tether.py")
AUTOGROUP = Path("/proc/sys/kernel/sched_autogroup_enabled")
LOG_BYTES = 10 << 20
_TAIL_LINES = 12


class ProcessGroup(subprocess.Popen[bytes]):
    """A child that leads a group of processes."""

    def kill(self) -> None:
        """Kill the group, also its remaining processes after the end of the child."""
        # macOS answers EPERM for a group that has only zombies.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)


@functools.cache
def _spawner() -> ThreadPoolExecutor:
    # The kernel's parent-death signal follows the parent *thread*: this one lives as long as the process.
    return ThreadPoolExecutor(1, thread_name_prefix="spawner")


def rotate(log: Path, limit: int = LOG_BYTES) -> None:
    """Move a log of more than `limit` bytes to `NAME.log.1`."""
    log.parent.mkdir(parents=True, exist_ok=True)
    if log.exists() and log.stat().st_size > limit:
        log.replace(log.with_name(log.name + ".1"))


def spawn(
    argv: Sequence[str],
    *,
    log: Path,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    nice: int = 0,
) -> ProcessGroup:
    """Start `argv` in its own group of processes and append its output to `log`.

    It dies with this process. `nice` lowers its priority where Linux groups by sessions, for only within one does
    niceness count then: the children keep an order among themselves, and share with the rest of the machine as one
    session does. Elsewhere they would yield to strangers, so they all keep their priority. Thread-safe.

    Raises FileNotFoundError if `cwd` is missing; if the program is missing, the child ends immediately.
    """
    rotate(log)
    lower = nice if _groups_by_sessions() else 0
    command = [sys.executable, "-I", "-S", str(TETHER), str(os.getpid()), str(lower), *argv]

    def start() -> ProcessGroup:
        with log.open("ab") as output:
            return ProcessGroup(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=cwd,
                env=None if env is None else dict(env),
                process_group=0,
            )

    return _spawner().submit(start).result()


def _groups_by_sessions() -> bool:
    return AUTOGROUP.exists() and AUTOGROUP.read_text(encoding="ascii").strip() == "1"


def tail(log: Path) -> str:
    """The last lines of a log, for an error message."""
    if not log.exists():
        return "(no log)"
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 16_384))
        return "\n".join(file.read().decode(errors="replace").splitlines()[-_TAIL_LINES:])


def failed_start(name: str, what: str, log: Path, data: Path | None) -> StartError:
    """Why a child didn't start: the disk of its `data` is full, or `what` and the end of its log."""
    log_tail = tail(log)
    full = full_disk_error(name, data, log_tail) if data else ""
    return StartError(full or f"{name} {what}; {log} ends with:\n{log_tail}")


def await_ready(
    name: str,
    process: subprocess.Popen[bytes],
    ready: Callable[[], bool],
    log: Path,
    timeout: float,
    data: Path | None = None,
) -> None:
    """Block until `ready()`. Raises StartError if the child ends first or `timeout` seconds pass."""
    limit = time.monotonic() + timeout
    while not ready():
        if process.poll() is not None:
            raise failed_start(name, f"ended with {process.returncode} while starting", log, data)
        if time.monotonic() > limit:
            raise failed_start(name, f"was not ready after {timeout:.0f} s", log, data)
        time.sleep(0.02)
