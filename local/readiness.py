"""Is one of our processes ready? Asked over HTTP, blocking, from a thread."""

import json
import urllib.error
import urllib.request
from http.client import HTTPException


def reachable_host(host: str) -> str:
    """The address by which this machine reaches a server that listens on `host`."""
    return {"0.0.0.0": "127.0.0.1", "::": "[::1]", "": "127.0.0.1"}.get(host, host)  # noqa: S104 - looked up, not bound


def is_ready(address: str, instance: str = "", timeout: float = 2.0) -> bool:
    """True when `GET {address}/readyz` answers 200, and what answers was started with this `SVC_INSTANCE`, where one is asked for.

    A port alone tells nothing: another deployment may have it.
    """
    try:
        with urllib.request.urlopen(f"{address}/readyz", timeout=timeout) as answer:  # noqa: S310 - ours, http
            return bool(answer.status == 200) and (not instance or _instance_of(answer.read()) == instance)
    except (OSError, ValueError, HTTPException):
        return False


def _instance_of(body: bytes) -> object:
    """Raises ValueError for what is no JSON."""
    answer = json.loads(body)
    return answer.get("instance") if isinstance(answer, dict) else None
