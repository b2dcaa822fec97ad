"""Variables that Kubernetes, and links between containers, make for services.

A service named `svc-edge` gives every process of its namespace some that begin with our prefix, and `svc-dashboard` even one with a
name of ours (SVC_DASHBOARD_PORT). They are nobody's settings. Each is known by the form of its name and of its value together, so
that a mistyped setting is still refused.
"""

import ipaddress
import re
from collections.abc import Mapping
from typing import Final

_SERVICE: Final = r"SVC(?:_[A-Z0-9]+)*"
_HOST: Final = re.compile(rf"{_SERVICE}_SERVICE_HOST|{_SERVICE}_PORT_\d+_(?:TCP|UDP|SCTP)_ADDR")
_NUMBER: Final = re.compile(
    rf"{_SERVICE}_SERVICE_PORT(?:_[A-Z0-9]+)*|{_SERVICE}_PORT_\d+_(?:TCP|UDP|SCTP)_PORT"
)
_LINK: Final = re.compile(rf"{_SERVICE}_PORT(?:_\d+_(?:TCP|UDP|SCTP))?")
_PROTOCOL: Final = re.compile(rf"{_SERVICE}_PORT_\d+_(?:TCP|UDP|SCTP)_PROTO")
_URL: Final = re.compile(r"(?:tcp|udp|sctp)://(.+):(\d{1,5})")


def is_service_variable(name: str, value: str) -> bool:
    """Whether a variable is one that Kubernetes makes for a service, by the form of its name and of its value."""
    if _HOST.fullmatch(name):
        return _is_ip(value)
    if _NUMBER.fullmatch(name):
        return _is_port(value)
    if _PROTOCOL.fullmatch(name):
        return value in {"tcp", "udp", "sctp"}
    link = _URL.fullmatch(value) if _LINK.fullmatch(name) else None
    return link is not None and _is_ip(link[1].strip("[]")) and _is_port(link[2])


def service_variables(environ: Mapping[str, str]) -> list[str]:
    """The names of those in an environment."""
    return sorted(name for name, value in environ.items() if is_service_variable(name, value))


def _is_ip(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _is_port(text: str) -> bool:
    return text.isdecimal() and 0 < int(text) <= 65535
