"""Variables that Kubernetes and container links set for services.

A service named `svc-edge` gives all processes of its namespace variables with the prefix of the settings.
`svc-dashboard` even gives one with the name of a setting (SVC_DASHBOARD_PORT). They are recognized by the
syntax of both name and value, so that a mistyped setting is still refused.
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
    """Whether Kubernetes set the variable for a service, by the syntax of its name and value."""
    if _HOST.fullmatch(name):
        return _is_ip(value)
    if _NUMBER.fullmatch(name):
        return _is_port(value)
    if _PROTOCOL.fullmatch(name):
        return value in {"tcp", "udp", "sctp"}
    link = _URL.fullmatch(value) if _LINK.fullmatch(name) else None
    return link is not None and _is_ip(link[1].strip("[]")) and _is_port(link[2])


def service_variables(environ: Mapping[str, str]) -> list[str]:
    """The names of such variables in an environment."""
    return sorted(name for name, value in environ.items() if is_service_variable(name, value))


def _is_ip(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _is_port(text: str) -> bool:
    return text.isdecimal() and 0 < int(text) <= 65535
