"""A project's own in-app marks, which win over the client's and over what is known of libraries."""

import re
from collections.abc import Iterable, Sequence
from fnmatch import translate
from typing import NamedTuple, Self

from msgspec.structs import replace

from grouping.fingerprint.forms import ErrorForm, Frame, GroupingEvent, OwnFrame

# As much of a name as grouping looks at.
_CHARACTERS = 600


class FrameMark(NamedTuple):
    """Frames whose file or function matches one of some globs are the app's, or aren't."""

    pattern: re.Pattern[str]
    in_app: bool

    @classmethod
    def of(cls, globs: Iterable[str], in_app: bool) -> Self:
        """A mark from globs in the manner of a shell: `*`, `?`, `[abc]`; upper and lower case differ."""
        return cls(re.compile("|".join([f"(?:{translate(glob)})" for glob in globs])), in_app)

    def matches(self, frame: Frame) -> bool:
        """Whether one of the globs fits the frame's file or function."""
        return any(
            self.pattern.match(text[:_CHARACTERS]) is not None
            for text in (frame.file, frame.function)
            if text
        )


def marked(event: GroupingEvent, marks: Sequence[FrameMark]) -> GroupingEvent:
    """The event with its frames marked anew, the first fitting mark deciding; the given event stays as it is."""
    return replace(event, error=_marked_error(event.error, marks)) if marks else event


def _marked_error(error: ErrorForm, marks: Sequence[FrameMark]) -> ErrorForm:
    stack = None if error.stack is None else [_marked_frame(frame, marks) for frame in error.stack]
    cause = None if error.cause is None else _marked_error(error.cause, marks)
    return replace(error, stack=stack, cause=cause)


def _marked_frame(frame: Frame, marks: Sequence[FrameMark]) -> Frame:
    for mark in marks:
        if mark.matches(frame):
            if not mark.in_app:
                return replace(frame, in_app=False)
            return OwnFrame(frame.function, frame.file, frame.line, frame.column, True, frame.absolute_path)
    return frame
