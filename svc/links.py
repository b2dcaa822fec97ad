"""`linkBy`: values that link a person's events across projects, hashed before they are stored (protocol, 2.11)."""

import hashlib
import re
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, Final

from svc.plain import text_of, wellformed

_NOT_A_DIGIT: Final = re.compile("[^0-9]+")
_MAX_KEYS: Final = 20


def _lower_and_trim(value: str) -> str:
    return value.strip().lower()


def _phone(value: str) -> str:
    return "+" + _NOT_A_DIGIT.sub("", value)


NORMALISERS: Final[dict[str, Callable[[str], str]]] = {
    "email": _lower_and_trim,
    "phone": _phone,
    "username": _lower_and_trim,
    "googleSub": str.strip,
    "appleSub": str.strip,
    "metaSub": str.strip,
}


def normalise(key: str, value: str) -> str:
    """The canonical spelling that is hashed; a key without a rule leaves the value unchanged."""
    rule = NORMALISERS.get(key)
    return value if rule is None else rule(value)


def link_hashes(link_by: Mapping[Any, Any]) -> dict[str, str]:
    """Key to SHA-256 in lower-case hexadecimal.

    Values that are empty after normalisation are skipped: their hash would link everyone who left the field empty.
    """
    hashes = {}
    for key, value in islice(link_by.items(), _MAX_KEYS):
        if value is None:
            continue
        name = text_of(key, 64)
        normalised = normalise(name, value if isinstance(value, str) else text_of(value))
        if normalised not in {"", "+"}:
            hashes[name] = hashlib.sha256(wellformed(normalised).encode()).hexdigest()
    return hashes
