"""Which exceptions were captured: said on the exception itself, so that whoever meets it further out leaves it alone.

Its fields are reached past its class, which may refuse to have them set (a frozen dataclass) or fail.
"""

import contextlib
from typing import Any, Final

_MARK: Final = "__svc_event_id__"
_FIELDS: Final[Any] = BaseException.__dict__["__dict__"]


def remember(error: BaseException, event_id: str) -> None:
    """Put the event's id on the exception."""
    with contextlib.suppress(Exception):
        _FIELDS.__get__(error)[_MARK] = event_id


def event_of(error: BaseException) -> str | None:
    """The id of the event that this exception was captured as."""
    with contextlib.suppress(Exception):
        found = _FIELDS.__get__(error).get(_MARK)
        return found if type(found) is str else None
    return None
