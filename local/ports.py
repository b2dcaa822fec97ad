"""Ports of local servers: chosen once per data directory and stored, so that clients find a restarted server."""

import json
import random
import socket
from collections.abc import Sequence
from pathlib import Path

# Below the kernel's ephemeral range: no outgoing connection takes a server's port while the server is down.
RANGE = range(20_000, 32_000)
_random = random.SystemRandom()
"""Not the shared generator: tests seed it, and concurrent processes would try the same ports."""
_given: set[int] = set()
"""Ports that this process has chosen: a server of a stack may listen long after the port of another one is chosen."""


def is_free(port: int, host: str = "127.0.0.1") -> bool:
    """True if a server could listen on `port` now."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def free_port() -> int:
    """A free port of 127.0.0.1 that this process hasn't got before."""
    if 2 * len(_given) > len(RANGE):
        _given.clear()
    for _ in range(1000):
        port = _random.choice(RANGE)
        if port not in _given and is_free(port):
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
    if ports != stored:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(ports) + "\n")
    return ports
