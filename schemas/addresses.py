"""What an address of a server looks like, told without asking anybody. Pure."""

import re
from typing import Final

_FORM: Final = re.compile(r"(?P<host>\[[0-9A-Fa-f:.%\w]+\]|[^\s:\[\]/,]+)(:(?P<port>[0-9]{1,5}))?").fullmatch
_LAST_PORT: Final = 65535


def is_address(text: str) -> bool:
    """Whether the text is `host:port`, or a host alone; an IPv6 address stands in brackets."""
    found = _FORM(text)
    if not found or (found["port"] and not 1 <= int(found["port"]) <= _LAST_PORT):
        return False
    try:
        return bool(found["host"].encode("idna"))
    except UnicodeError:
        return False
