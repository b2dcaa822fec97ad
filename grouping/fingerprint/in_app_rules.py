"""A project's own in-app marks, which win over the client's and over what is known of libraries."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from msgspec.structs import replace

from grouping.fingerprint.event_view import GroupingError, GroupingEvent, GroupingFrame, OwnFrame
from grouping.globs import matcher, weight

# As much of a name as grouping looks at.
_CHARACTERS = 600
_REMEMBERED: Final = 8192


class InAppRule:
    """Frames whose file or function matches one of some globs are the app's, or aren't. Equal only to itself."""

    __slots__ = ("_fitting", "in_app", "weight")

    def __init__(self, globs: Iterable[str], in_app: bool) -> None:
        globs = tuple(globs)
        self._fitting = tuple([matcher(glob) for glob in globs])
        self.in_app = in_app
        self.weight = sum(map(weight, globs))

    def matches(self, function: str, file: str) -> bool:
        """Whether one of the globs fits one of the names that aren't empty."""
        return any((file and fits(file)) or (function and fits(function)) for fits in self._fitting)


InAppRules = tuple[InAppRule, ...]


def apply_in_app_rules(event: GroupingEvent, in_app_rules: InAppRules) -> GroupingEvent:
    """The event with its frames marked anew, the first fitting mark deciding; the given event stays as it is."""
    return replace(event, error=_apply_to_error(event.error, in_app_rules)) if in_app_rules else event


def frame_characters(event: GroupingEvent) -> int:
    """Characters of the names that a pattern is held against."""
    total, error = 0, event.error
    while True:
        for frame in error.stack or ():
            total += min(_CHARACTERS, len(frame.file or "")) + min(_CHARACTERS, len(frame.function or ""))
        if error.cause is None:
            return total
        error = error.cause


def _apply_to_error(error: GroupingError, in_app_rules: InAppRules) -> GroupingError:
    stack = None if error.stack is None else [_apply_to_frame(frame, in_app_rules) for frame in error.stack]
    cause = None if error.cause is None else _apply_to_error(error.cause, in_app_rules)
    return replace(error, stack=stack, cause=cause)


def _apply_to_frame(frame: GroupingFrame, in_app_rules: InAppRules) -> GroupingFrame:
    in_app = _in_app(in_app_rules, (frame.function or "")[:_CHARACTERS], (frame.file or "")[:_CHARACTERS])
    if in_app is None:
        return frame
    if not in_app:
        return replace(frame, in_app=False)
    return OwnFrame(frame.function, frame.file, frame.line, frame.column, True, frame.absolute_path)


@lru_cache(maxsize=_REMEMBERED)
def _in_app(in_app_rules: InAppRules, function: str, file: str) -> bool | None:
    """What the first mark that fits says; events of one problem have the same frames."""
    return next((rule.in_app for rule in in_app_rules if rule.matches(function, file)), None)
