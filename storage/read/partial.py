"""Whether a read is partial: it lacks the rows of a server that did not answer.

The settings must allow such an answer. All reads within `noting` share one note, also those in tasks that are
begun there.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

_note: Final[ContextVar["Note | None"]] = ContextVar("partial", default=None)


class Note:
    """Of the reads of one answer."""

    is_partial = False


@contextmanager
def noting() -> Iterator[Note]:
    """A note of the reads in the `with` block."""
    note = Note()
    token = _note.set(note)
    try:
        yield note
    finally:
        _note.reset(token)


def note_partial() -> None:
    """A read lacks the rows of a server."""
    note = _note.get()
    if note is not None:
        note.is_partial = True


def is_partial() -> bool:
    """Whether a read since the beginning of the innermost `noting` is partial."""
    note = _note.get()
    return note is not None and note.is_partial
