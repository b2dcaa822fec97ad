"""Ports of local servers: chosen once per data directory and stored, so that clients find a restarted server.

A server listens a while after its port was chosen. Until it ends, the process that chose a port holds a lock on
it (a byte of one file in the temporary folder), so that concurrent processes don't choose the same.
"""

import fcntl
import json
import os
import random
import socket
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

# Below the kernel's ephemeral range: no outgoing connection takes a server's port while the server is down.
RANGE = range(20_000, 32_000)
_random = random.SystemRandom()
"""Not the shared generator: tests seed it, and concurrent processes would try the same ports."""
_given: set[int] = set()
"""Ports that this process has chosen: a process's own locks don't keep it from choosing one twice."""


@cache
def _locks() -> int:
    """The descriptor of the file of locks."""
    name = f"svc-ports-{os.getuid()}"
    return os.open(Path(tempfile.gettempdir()) / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _lock(port: int) -> bool:
    """Lock a port until this process ends. False if another process has it."""
    try:
        fcntl.lockf(_locks(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except OSError:
        return False
    return True


def is_free(port: int, host: str = "127.0.0.1") -> bool:
    """True if a server could listen on `port` now."""
    return bind_error(port, host) is None


def bind_error(port: int, host: str) -> OSError | None:
    """Why no server can listen on `port` of `host` now; None if one can."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            return error
    return None


def free_port() -> int:
    """A free port of 127.0.0.1 that neither this process nor another one has chosen."""
    if 2 * len(_given) > len(RANGE):
        _given.clear()
    for _ in range(1000):
        port = _random.choice(RANGE)
        if port not in _given and is_free(port) and _lock(port):
            _given.add(port)
            return port
    raise OSError(f"no free port between {RANGE.start} and {RANGE.stop}")


def stored_ports(file: Path, names: Sequence[str]) -> dict[str, int]:
    """The ports stored in `file` (a JSON object); missing ones and those in use are replaced and stored."""
    stored: dict[str, int] = json.loads(file.read_text()) if file.exists() else {}
    ports: dict[str, int] = {}
    for name in names:
        port = stored.get(name)
        free = port is not None and is_free(port)
        ports[name] = port if port is not None and free else free_port()
        _given.add(ports[name])
        # One that is stored is used although another process holds it: the one that started this process.
        _lock(ports[name])
    if ports != stored:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(ports) + "\n")
    return ports
