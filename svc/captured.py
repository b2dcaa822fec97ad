"""Which exceptions were captured: said on the exception itself, so that whoever meets it further out leaves it alone."""

import contextlib
from typing import Final

_MARK: Final = "__svc_event_id__"


def remember(error: BaseException, event_id: str) -> None:
    """Put the event's id on the exception. Its own `__setattr__` is not asked: it may refuse (a frozen dataclass) or fail."""
    with contextlib.suppress(Exception):
        BaseException.__setattr__(error, _MARK, event_id)


def event_of(error: BaseException) -> str | None:
    """The id of the event that this exception was captured as."""
    try:
        found = BaseException.__getattribute__(error, _MARK)
    except AttributeError:
        return None
    return found if type(found) is str else None
