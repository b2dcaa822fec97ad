"""Safe access to an exception's attributes: a class that overrides one badly loses only that attribute."""

import contextlib
from collections.abc import Iterable
from itertools import islice
from types import TracebackType
from typing import Any, Final

from svc.plain import type_name

_OWN: Final[dict[str, Any]] = {name: BaseException.__dict__[name] for name in ("__cause__", "__context__")}
_TRACEBACK: Final[Any] = BaseException.__dict__["__traceback__"]
_MEMBERS: Final[Any] = BaseExceptionGroup.__dict__["exceptions"]
_FIELDS: Final[Any] = BaseException.__dict__["__dict__"]
_EVENT_ID: Final = "__svc_event_id__"


def is_exception(value: object, kind: type[BaseException] = BaseException) -> bool:
    """`isinstance` without the object's own `__class__`, which may raise or lie."""
    return issubclass(type(value), kind)


def _attribute(error: BaseException, name: str) -> Any:
    """The attribute as the class returns it; if that raises, the interpreter's own value."""
    try:
        return getattr(error, name)
    except Exception:
        return _OWN[name].__get__(error)


def traceback_of(error: BaseException) -> TracebackType | None:
    """The exception's traceback, if it has one."""
    traceback: TracebackType | None = _TRACEBACK.__get__(error)
    return traceback


def origin_of(error: BaseException) -> BaseException | None:
    """The cause to report: a group's first member, otherwise the cause or context that Python would print."""
    if members := members_of(error, 1):
        return members[0]
    cause = _attribute(error, "__cause__")
    if cause is None and not _hides_context(error):
        cause = _attribute(error, "__context__")
    return cause if is_exception(cause) else None


def _hides_context(error: BaseException) -> bool:
    try:
        return bool(error.__suppress_context__)
    except Exception:
        return False


def members_of(error: BaseException, count: int) -> list[BaseException]:
    """The first `count` members of an exception group; empty for other exceptions."""
    if not is_exception(error, BaseExceptionGroup):
        return []
    return [member for member in islice(_MEMBERS.__get__(error), count) if is_exception(member)]


def notes_of(error: BaseException, count: int) -> list[object]:
    """The first `count` notes of the exception (PEP 678)."""
    try:
        notes: Iterable[object] = getattr(error, "__notes__", ())
        return list(islice(notes, count)) if isinstance(notes, (list, tuple)) else []
    except Exception:
        return []


def name_of(error: BaseException) -> str:
    """The name of the exception's class."""
    return type_name(error)


def mark_captured(error: BaseException, event_id: str) -> None:
    """Store the event's id on the exception, so that no outer handler captures it a second time.

    This bypasses the class, which may refuse new attributes (a frozen dataclass) or fail.
    """
    with contextlib.suppress(Exception):
        _FIELDS.__get__(error)[_EVENT_ID] = event_id


def captured_event_id(error: BaseException) -> str | None:
    """The id of the event that this exception was captured as."""
    with contextlib.suppress(Exception):
        event_id = _FIELDS.__get__(error).get(_EVENT_ID)
        return event_id if type(event_id) is str else None
    return None
