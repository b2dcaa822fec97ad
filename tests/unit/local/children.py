"""Small programs for the supervisor to run, and how to make children of them."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

from local.child import Child

STOPS_WELL = """
import pathlib, signal, sys
name, folder = sys.argv[1], pathlib.Path(sys.argv[2])
def stop(*_):
    with (folder / "stops").open("a") as out:
        out.write(name + "\\n")
    sys.exit(0)
signal.signal(signal.SIGTERM, stop)
with (folder / "starts").open("a") as out:
    out.write(name + "\\n")
(folder / f"{name}.ready").touch()
signal.pause()
"""
IGNORES_TERM = """
import pathlib, signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
(pathlib.Path(sys.argv[2]) / f"{sys.argv[1]}.ready").touch()
while True:
    signal.pause()
"""
HAS_A_CHILD = """
import pathlib, signal, subprocess, sys
folder = pathlib.Path(sys.argv[2])
child = subprocess.Popen([sys.executable, "-P", "-c", \
"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.pause()"])
(folder / "grandchild").write_text(str(child.pid))
(folder / f"{sys.argv[1]}.ready").touch()
signal.pause()
"""


def child(
    name: str,
    folder: Path,
    program: str = STOPS_WELL,
    *,
    once: bool = False,
    start_seconds: float = 30,
    grace_seconds: float = 30,
    ready: Callable[[], bool] | None = None,
    progress: Callable[[], str] = str,
) -> Child:
    """A child that runs `program` with its name and `folder`; ready once it has touched `NAME.ready`."""
    command = [sys.executable, "-P", "-c", program, name, str(folder)]
    return Child(
        name,
        lambda: command,
        folder / f"{name}.log",
        ready or (folder / f"{name}.ready").exists,
        once=once,
        start_seconds=start_seconds,
        grace_seconds=grace_seconds,
        progress=progress,
    )


def lives(pid: int) -> bool:
    """True while the process exists and isn't a zombie."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rsplit(")", 1)[1].split()[0] != "Z"
