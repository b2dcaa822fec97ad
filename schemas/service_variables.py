"""Variables that Kubernetes and container links set for services.

A service named `svc-edge` gives all processes of its namespace variables with the prefix of the settings.
`svc-dashboard` even gives one with the name of a setting (SVC_DASHBOARD_PORT), whose value is an address.
"""

import re
from collections.abc import Mapping
from typing import Final

_NAME: Final = re.compile(
    r"SVC(_[A-Z0-9]+)*_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9]+)*|PORT_\d+_(TCP|UDP|SCTP)(_ADDR|_PORT|_PROTO)?)"
)
_LINK: Final = re.compile(r"(tcp|udp|sctp)://.+:\d+")


def is_service_variable(name: str, value: str) -> bool:
    """Whether Kubernetes set the variable for a service. No setting has such a name, but for those of ports."""
    return bool(_NAME.fullmatch(name) or (name.endswith("_PORT") and _LINK.fullmatch(value)))


def service_variables(environ: Mapping[str, str]) -> list[str]:
    """The names of such variables in an environment."""
    return sorted(
        name
        for name, value in environ.items()
        if name.startswith("SVC_") and is_service_variable(name, value)
    )
