"""The error chain and its frames as a page shows them: in-app frames open, library frames folded."""

import re
from itertools import groupby
from typing import Any, Final

import msgspec
from msgspec import Struct

from dashboard.view.raw_event import items_of, mapping_of, number_of, text_of

MAX_CAUSES: Final = 32
_WORD: Final = re.compile(r"\w+|\S")


class ContextLine(Struct, frozen=True):
    """A line of source.

    Of the frame's line, `marked` is the word at its column, and `rest` is the text after it. Not all clients
    send the text.
    """

    number: int
    text: str
    is_frame_line: bool = False
    marked: str = ""
    rest: str = ""


class FrameView(Struct, frozen=True):
    """A frame; `line` and `column` are 0 if unknown. `times` counts equal neighbours (recursion)."""

    function: str
    file: str
    line: int
    column: int
    in_app: bool
    context: tuple[ContextLine, ...]
    times: int = 1

    @property
    def location(self) -> str:
        """`file:line:column`, as editors accept it."""
        numbers = [str(n) for n in (self.line, self.column) if n]
        return ":".join([self.file, *numbers])


class FrameGroup(Struct, frozen=True):
    """Consecutive frames that are all in-app or all library frames; `is_open` if shown initially."""

    in_app: bool
    is_open: bool
    frames: tuple[FrameView, ...]

    @property
    def calls(self) -> int:
        """The number of frames as sent."""
        return sum(frame.times for frame in self.frames)


class ErrorView(Struct, frozen=True):
    """One error of the chain, with the top of its stack first."""

    type: str
    message: str
    groups: tuple[FrameGroup, ...]


def chain(error: Any) -> list[ErrorView]:
    """The error and its causes, outermost first."""
    errors: list[ErrorView] = []
    while isinstance(error, dict) and len(errors) < MAX_CAUSES:
        errors.append(_error(error))
        error = error.get("cause")
    return errors


def _error(error: dict[str, Any]) -> ErrorView:
    sent = [_frame(mapping_of(frame)) for frame in items_of(error.get("stack"))]
    frames = [msgspec.structs.replace(frame, times=sum(1 for _ in equal)) for frame, equal in groupby(sent)]
    has_in_app = any(frame.in_app for frame in frames)
    groups = tuple(
        FrameGroup(in_app, in_app or not has_in_app, tuple(group))
        for in_app, group in groupby(frames, lambda frame: frame.in_app)
    )
    return ErrorView(text_of(error.get("type")) or "Error", text_of(error.get("message")), groups)


def _frame(frame: dict[str, Any]) -> FrameView:
    line = number_of(frame.get("line"))
    column = number_of(frame.get("column"))
    own = _own_line(line, column, text_of(frame.get("contextLine")))
    return FrameView(
        function=text_of(frame.get("function")),
        file=text_of(frame.get("file")),
        line=line,
        column=column,
        in_app=frame.get("inApp") is True,
        context=_context(own, items_of(frame.get("preContext")), items_of(frame.get("postContext"))),
    )


def _own_line(line: int, column: int, text: str) -> ContextLine:
    at = column - 1 if 0 < column <= len(text) else len(text)
    marked = _WORD.match(text, at)
    end = marked.end() if marked else at
    return ContextLine(line, text[:at], is_frame_line=True, marked=text[at:end], rest=text[end:])


def _context(own: ContextLine, before: list[Any], after: list[Any]) -> tuple[ContextLine, ...]:
    if not own.number or not (before or after or own.text or own.marked):
        return ()
    first = own.number - len(before)
    return (
        *(ContextLine(first + i, text_of(text)) for i, text in enumerate(before)),
        own,
        *(ContextLine(own.number + 1 + i, text_of(text)) for i, text in enumerate(after)),
    )
