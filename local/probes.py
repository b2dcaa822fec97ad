"""Is one of our processes ready? Asked over HTTP, blocking, from a thread."""

import urllib.error
import urllib.request


def reachable_host(host: str) -> str:
    """The address by which this machine reaches a server that listens on `host`."""
    return {"0.0.0.0": "127.0.0.1", "::": "[::1]", "": "127.0.0.1"}.get(host, host)  # noqa: S104 - looked up, not bound


def is_ready(address: str, timeout: float = 2.0) -> bool:
    """True when `GET {address}/readyz` answers 200."""
    try:
        with urllib.request.urlopen(f"{address}/readyz", timeout=timeout) as answer:  # noqa: S310 - ours, http
            return bool(answer.status == 200)
    except (OSError, ValueError):
        return False
