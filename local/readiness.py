"""Readiness of our processes over HTTP; blocking, for use in a thread."""

import urllib.error
import urllib.request
from http import HTTPStatus
from http.client import HTTPException

import msgspec

from schemas.addresses import host_port
from schemas.errors import AnotherProgram
from schemas.health import Readiness

_NOTHING = Readiness(ready=False, parts={})
_SECONDS = 2.0


def local_url(host: str, port: int) -> str:
    """The URL at which this machine reaches a server that listens on `host`."""
    every = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}  # noqa: S104 - looked up, not bound
    return f"http://{host_port(every.get(host, host), port)}"


def is_ready(address: str, instance: str = "") -> bool:
    """True if `GET {address}/readyz` answers 200 from a process with this `SVC_INSTANCE` (if given).

    The instance matters because another deployment may use the port.
    """
    return _readiness(address, instance).ready


def unready_parts(address: str, instance: str) -> str:
    """The unready parts of a process with their details, such as the progress of its recovery.

    Empty if this instance doesn't answer, or has no address yet.
    """
    if not address:
        return ""
    parts = _readiness(address, instance).parts
    return "; ".join(f"{name}: {part.detail}" for name, part in parts.items() if not part.ok)


def _readiness(address: str, instance: str) -> Readiness:
    """The body of readyz; without an answer of this instance, not ready and without parts."""
    try:
        readiness = readiness_of(address, _SECONDS)
    except (OSError, AnotherProgram):
        return _NOTHING
    return readiness if not instance or readiness.instance == instance else _NOTHING


def readiness_of(address: str, seconds: float) -> Readiness:
    """The body of readyz.

    Raises AnotherProgram where another program answers, TimeoutError where one listens and doesn't answer, and
    OSError where nothing can be reached.
    """
    try:
        with urllib.request.urlopen(f"{address}/readyz", timeout=seconds) as response:  # noqa: S310 - ours, http
            status, body = response.status, response.read()
    except urllib.error.HTTPError as error:
        with error:
            status, body = error.code, error.read()
    except HTTPException as error:
        raise AnotherProgram(f"{address} doesn't speak HTTP") from error
    try:
        readiness = msgspec.json.decode(body, type=Readiness)
    except msgspec.DecodeError as error:
        raise AnotherProgram(f"{address} is another program") from error
    if readiness.ready and status != HTTPStatus.OK:
        raise AnotherProgram(f"{address} is another program")
    return readiness
