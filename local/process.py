"""One child process: started tied to us, in a session of its own, with a log file, and ended without a trace."""

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

from local.disk_space import ended_without_room
from local.errors import StartError

TETHER = Path(__file__).with_name("tether.py")
LOG_BYTES = 10 << 20


@functools.cache
def _spawner() -> ThreadPoolExecutor:
    # The kernel ties "die with the parent" to the parent's *thread*: this one lives as long as the process does.
    return ThreadPoolExecutor(1, thread_name_prefix="spawner")


def rotate(log: Path, limit: int = LOG_BYTES) -> None:
    """Move a log of more than `limit` bytes to `NAME.log.1`, so that a new start begins a new file."""
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
) -> subprocess.Popen[bytes]:
    """Start `argv` in a session of its own, its output appended to `log`; it dies when this process does. `nice` lowers its priority.

    May be called from any thread. Raises FileNotFoundError where `cwd` is missing; a missing program ends the child at once.
    """
    rotate(log)
    tied = [sys.executable, "-I", "-S", str(TETHER), str(os.getpid()), str(nice), *argv]

    def start() -> subprocess.Popen[bytes]:
        with log.open("ab") as output:
            return subprocess.Popen(
                tied,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=cwd,
                env=None if env is None else dict(env),
                start_new_session=True,
            )

    return _spawner().submit(start).result()


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill what is left of the child's process group, itself included, and reap it."""
    # macOS answers EPERM for a group of zombies only.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def end(process: subprocess.Popen[bytes], grace: float) -> bool:
    """Ask the child to stop, kill it and its group after `grace` seconds; true when it stopped by itself."""
    if process.poll() is None:
        process.terminate()
    try:
        process.wait(grace)
    except subprocess.TimeoutExpired:
        return False
    finally:
        kill_group(process)
    return True


def tail(log: Path, lines: int = 12) -> str:
    """The last lines of a log, for an error message."""
    if not log.exists():
        return "(no log)"
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 16_384))
        return "\n".join(file.read().decode(errors="replace").splitlines()[-lines:])


def failed_start(name: str, what: str, log: Path, data: Path | None = None) -> StartError:
    """Why a child didn't start: that the disk of its `data` is full, or `what` happened with the end of its log."""
    said = tail(log)
    full = ended_without_room(name, data, said) if data else ""
    return StartError(full or f"{name} {what}; {log} ends with:\n{said}")


def await_ready(
    name: str,
    process: subprocess.Popen[bytes],
    ready: Callable[[], bool],
    log: Path,
    timeout: float,
    data: Path | None = None,
) -> None:
    """Block until `ready()`; StartError when the child ends first or `timeout` seconds have passed."""
    limit = time.monotonic() + timeout
    while not ready():
        if process.poll() is not None:
            raise failed_start(name, f"ended with {process.returncode} while starting", log, data)
        if time.monotonic() > limit:
            raise failed_start(name, f"was not ready after {timeout:.0f} s", log, data)
        time.sleep(0.02)
