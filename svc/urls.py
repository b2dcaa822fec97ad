"""Removes credentials from URLs: user, password, and values of the query (protocol, 2.8).

Removed are the values of well-known parameters, and those that contain a mail address.
"""

import re
from typing import Final
from urllib.parse import unquote_plus

from svc.limits import TEXT_CHARS
from svc.plain import clip

STRIPPED: Final = "***"
_SECRET_ENDINGS: Final = (
    "token", "key", "password", "secret", "passwd", "pwd", "signature", "sig", "credential", "auth", "authorization",
)  # fmt: skip
_USERINFO: Final = re.compile(r"^([a-zA-Z][a-zA-Z0-9+.-]*:)?//[^/?#]*@")
_NESTED: Final = re.compile(r"(?i)(?:token|key|password|secret|signature)\s*[=:]")
_SECRET_NAMES: Final = frozenset(
    {"code", "jwt", "otp", "session", "sessionid", "session_id", "sid", "ticket"}
)
_MAIL: Final = re.compile(r"[\w.+-]@(?:[\w-]+\.)+[^\W\d_]{2,}")
_PAIRS: Final = re.compile("([&;])")


def scrub(url: str) -> str:
    """Replace secret values by `***` and remove user, password and fragment."""
    if "@" in url:
        url = _USERINFO.sub(lambda match: (match[1] or "") + "//", url)
    url = url.partition("#")[0]
    head, mark, query = url.partition("?")
    if not mark:
        return clip(head, TEXT_CHARS)
    pairs = [part if part in {"&", ";"} else _pair(part) for part in _PAIRS.split(query)]
    return clip(f"{head}?{''.join(pairs)}", TEXT_CHARS)


def _pair(pair: str) -> str:
    name, mark, value = pair.partition("=")
    if mark and value and (_is_secret(name) or _is_private(unquote_plus(value))):
        return f"{name}={STRIPPED}"
    return pair


def _is_private(value: str) -> bool:
    """Whether the value contains a secret's name, as a URL in it does, or a mail address."""
    return bool(_NESTED.search(value) or _MAIL.search(value))


def _is_secret(name: str) -> bool:
    """Whether the name ends like a secret's, such as `api_key`, `accessToken` and `X-Amz-Signature`."""
    plain = unquote_plus(name).strip().rstrip("[]").lower()
    return plain.endswith(_SECRET_ENDINGS) or plain in _SECRET_NAMES
