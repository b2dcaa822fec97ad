"""Readiness of our processes over HTTP; blocking, for use in a thread."""

import json
import urllib.error
import urllib.request
from http.client import HTTPException


def reachable_host(host: str) -> str:
    """The address at which this machine reaches a server that listens on `host`."""
    return {"0.0.0.0": "127.0.0.1", "::": "[::1]", "": "127.0.0.1"}.get(host, host)  # noqa: S104 - looked up, not bound


def is_ready(address: str, instance: str = "", timeout: float = 2.0) -> bool:
    """True if `GET {address}/readyz` answers 200 from a process with this `SVC_INSTANCE` (if given).

    The instance matters because another deployment may use the port.
    """
    try:
        with urllib.request.urlopen(f"{address}/readyz", timeout=timeout) as response:  # noqa: S310 - ours, http
            return bool(response.status == 200) and (
                not instance or _instance_of(response.read()) == instance
            )
    except (OSError, ValueError, HTTPException):
        return False


def _instance_of(body: bytes) -> object:
    """Raises ValueError for invalid JSON."""
    content = json.loads(body)
    return content.get("instance") if isinstance(content, dict) else None
