"""Processes of the product for tests: forked from one that has imported it, which costs 20 ms instead of a second.

`ForkedProcess` has the part of `subprocess.Popen` that tests use. The parent is started at the first use, by a test's
process, and ends with it, and so do all that it forked. A monitor between parent and child waits for the child
and tells how it ended.
"""

import ctypes
import json
import os
import runpy
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NoReturn

from local.tether import PR_SET_PDEATHSIG

IMPORTED: Final = ("cli.processors", "cli.writer", "cli.edge", "cli.notify", "cli.dashboard")


class ForkedProcess:
    """`python -m module` with this environment, its output appended to a file."""

    def __init__(
        self, module: str, environ: Mapping[str, str], output: Path, arguments: Sequence[str] = ()
    ) -> None:
        request = {
            "module": module,
            "environ": dict(environ),
            "output": str(output),
            "arguments": list(arguments),
        }
        # It exists from the first moment, for all readers.
        output.touch()
        self.args = [module, *arguments]
        self.returncode: int | None = None
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.connect(_parent())
        self._answers = self._connection.makefile("r")
        self._connection.sendall(json.dumps(request).encode() + b"\n")
        self.pid = int(self._answers.readline())

    def poll(self) -> int | None:
        """The exit code, or minus the signal that ended it; None while it runs."""
        return self._ended(0)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end. Raises subprocess.TimeoutExpired."""
        code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _ended(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._connection], [], [], timeout)[0]:
            # The monitor is killed where the parent ended before: so was the process.
            self.returncode = os.waitstatus_to_exitcode(int(self._answers.readline() or signal.SIGKILL))
            self._answers.close()
            self._connection.close()
        return self.returncode


@cache
def _parent() -> str:
    """The address of the parent, which is started here. Its standard input ends with this process."""
    # The path of a socket has 107 bytes at most, and TMPDIR may be longer.
    address = str(Path(tempfile.mkdtemp(prefix="svc-forked-", dir="/tmp")) / "socket")
    parent = subprocess.Popen(
        [sys.executable, "-P", "-m", "tests.forked", address], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert parent.stdout is not None
    assert parent.stdout.readline() == b"ready\n"
    _PARENTS.append(parent)
    return address


_PARENTS: Final[list[subprocess.Popen[bytes]]] = []


def stop() -> None:
    """End the parent, and all running children."""
    for parent in _PARENTS:
        parent.communicate()


def serve(address: str) -> None:
    """Import the programs, then fork a process for each connection, until standard input ends."""
    for module in IMPORTED:
        __import__(module)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while True:
            readable = select.select([listener, sys.stdin], [], [], 1)[0]
            _reap()
            if sys.stdin in readable:
                shutil.rmtree(Path(address).parent)
                return
            if listener in readable:
                connection, _ = listener.accept()
                if os.fork() == 0:
                    listener.close()
                    _monitor(connection)
                connection.close()


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def _monitor(connection: socket.socket) -> NoReturn:
    """Fork the process, tell its id, and in the end how it ended."""
    _die_with_parent()
    request = json.loads(connection.makefile("r").readline())
    child = os.fork()
    if child == 0:
        connection.close()
        _die_with_parent()
        _run(request)
    connection.sendall(f"{child}\n".encode())
    _, status = os.waitpid(child, 0)
    try:
        connection.sendall(f"{status}\n".encode())
    finally:
        os._exit(0)


def _run(request: Mapping[str, Any]) -> NoReturn:
    """Do the same as `python -m module`; its end, an error too, goes through the frames above."""
    output = os.open(request["output"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.environ.clear()
    os.environ.update(request["environ"])
    sys.argv = [request["module"], *request["arguments"]]
    # It runs as the main module only, not a second time under its import name.
    sys.modules.pop(request["module"], None)
    runpy.run_module(request["module"], run_name="__main__", alter_sys=True)
    sys.exit()


def _die_with_parent() -> None:
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    serve(sys.argv[1])
