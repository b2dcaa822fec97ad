"""Ports of local servers: chosen free once per data directory, then kept, so that clients find a restarted server."""

import json
import random
import socket
from collections.abc import Sequence
from pathlib import Path

# Below the kernel's range for outgoing connections: nothing takes a server's port while the server is down.
RANGE = range(20_000, 32_000)
_random = random.SystemRandom()
"""Processes that begin alike, and tests that seed the common one, must not look for the same ports."""


def is_free(port: int, host: str = "127.0.0.1") -> bool:
    """True when a server could listen on `port` now."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def free_port(taken: Sequence[int] = ()) -> int:
    """A port of 127.0.0.1 on which nothing listens, none of `taken`."""
    for _ in range(1000):
        port = _random.choice(RANGE)
        if port not in taken and is_free(port):
            return port
    raise OSError(f"no free port between {RANGE.start} and {RANGE.stop}")


def stored_ports(file: Path, names: Sequence[str]) -> dict[str, int]:
    """The ports kept in `file` (a JSON object), those missing or held by another program chosen anew and written."""
    kept: dict[str, int] = json.loads(file.read_text()) if file.exists() else {}
    ports: dict[str, int] = {}
    for name in names:
        port = kept.get(name)
        free = port is not None and is_free(port)
        ports[name] = port if port is not None and free else free_port(list(ports.values()))
    if ports != kept:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(ports) + "\n")
    return ports
