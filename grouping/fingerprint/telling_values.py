"""Values in messages that tell problems apart: codes, reasons, names of code and of schemas. Pure.

The templates of `messages` drop them.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from grouping.fingerprint import messages

# Replaces a value while the template is made: a character for private use, which no pattern takes for a letter.
_MARK: Final = "\ue000"
_CHARACTERS: Final = 600
_VALUE: Final = re.compile(
    # A short number, and a signal, after a word that announces a code.
    r"(?P<code>\b(?:[cC]ode|[eE]rrno|HTTP|[sS]ignal)[ :=#]{0,2}-?\d{1,4}(?![\w.:/-]))"
    # Codes of SQL's standard and of Oracle.
    r"|(?P<sql>\bSQLSTATE\[?[ :=]?\[?[0-9A-Z]{5}\]?|\bORA-\d{5}\b)"
    # OpenSSL's reasons: the numbers and functions before differ by release.
    r"|(?P<ssl>\berror:[0-9A-F]{8}:[^:]{1,60}:[^:]{0,60}:(?P<reason>[^:\n]{1,80}))"
    # A word for a reason.
    r"|(?P<word>\b(?:(?:[rR]eason|[cC]ause)(?: ?= ?|: )|error=)[A-Za-z][A-Za-z_]{2,40}(?![\w.:/@-]))"
    # A network interface, by the kernel's name or systemd's predictable one (RFC 8343; systemd.net-naming-scheme).
    r"|(?P<interface>\b(?:(?:eth|wlan|wwan|bond|ppp|tun|tap|can|br)\d{1,3}"
    r"|(?:en|wl|ww|ib)(?:o\d{1,3}|s\d{1,3}|p\d{1,3}s\d{1,3}))(?![\w-]))"
    # A method of the platform in quotes, and a snake-case name as schemas have.
    r"|(?P<method>'(?:[\w.\[\]]{1,60} )?(?:javax?|kotlin|androidx?)\.[\w.$]{1,80}\([^()']{0,120}\)')"
    r"|(?P<schema>[\"'`][a-z][a-z]*(?:_[a-z]+)+[\"'`])"
)
# One of these letters begins each alternative, so that a text without is passed quickly.
_HINT: Final = re.compile(
    r"""code|Code|rrno|HTTP|ignal|SQLSTATE|ORA-|error:|=[A-Za-z]|"|'|`|ause|eason|h\d|n\d|d\d|p\d|r\d|o\d|s\d"""
)


@lru_cache(maxsize=4096)
def template(message: str) -> str:
    """The template of a message, in which such values stay."""
    return _with_values(messages.leaves(message) or message, messages.template)


@lru_cache(maxsize=4096)
def headline(message: str) -> str:
    """The same of its first line."""
    return _with_values(messages.leaves(message) or message.strip().partition("\n")[0], messages.headline)


def _with_values(message: str, template: Callable[[str], str]) -> str:
    if _HINT.search(message) is None:
        return template(message)
    kept: list[str] = []

    def mark(found: re.Match[str]) -> str:
        kept.append(f"error {found['reason']}" if found["ssl"] else found[0])
        return _MARK

    text = _VALUE.sub(mark, message[:_CHARACTERS].replace(_MARK, ""))
    if not kept:
        return template(message)
    values = iter(kept)
    return re.sub(_MARK, lambda _: next(values, ""), template(text))
