"""The syntax of server addresses, without name resolution. Pure."""

import re
from typing import Final

_ADDRESS: Final = re.compile(
    r"(?P<host>\[[0-9A-Fa-f:.%\w]+\]|[^\s:\[\]/,]+)(:(?P<port>[0-9]{1,5}))?"
).fullmatch
_LAST_PORT: Final = 65535


def host_port(host: str, port: int) -> str:
    """`host:port`, with an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_address(text: str) -> bool:
    """Whether the text is `host:port` or a host alone; an IPv6 address is in brackets."""
    match = _ADDRESS(text)
    if not match or (match["port"] and not 1 <= int(match["port"]) <= _LAST_PORT):
        return False
    try:
        return bool(match["host"].encode("idna"))
    except UnicodeError:
        return False
