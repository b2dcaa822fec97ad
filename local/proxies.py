"""Servers on this machine are reached directly, although an HTTP proxy is configured for others."""

from collections.abc import MutableMapping
from typing import Final

_DIRECT: Final = "localhost,127.0.0.1,::1,[::1]"


def bypass_proxies(environ: MutableMapping[str, str]) -> None:
    """Add this machine to `no_proxy`, for this process and its children."""
    given = environ.get("no_proxy") or environ.get("NO_PROXY", "")
    if given != "*" and _DIRECT not in given:
        environ["no_proxy"] = f"{given},{_DIRECT}".strip(",")
