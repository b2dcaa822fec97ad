"""A project's in-app rules, which override the client's marks and the known libraries."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from msgspec.structs import replace

from grouping.fingerprint.event_view import GroupingError, GroupingEvent, GroupingFrame, OwnFrame
from grouping.fingerprint.frames import CHARACTERS
from grouping.globs import matcher, searches

_REMEMBERED: Final = 8192


class InAppRule:
    """Marks frames whose file or function matches a glob as in-app or not. Compared by identity.

    `searches` is their number in each name of a frame.
    """

    __slots__ = ("_fitting", "in_app", "searches")

    def __init__(self, globs: Iterable[str], in_app: bool) -> None:
        globs = tuple(globs)
        self._fitting = tuple([matcher(glob) for glob in globs])
        self.in_app = in_app
        self.searches = sum(map(searches, globs))

    def matches(self, function: str, file: str) -> bool:
        """Whether a glob matches a non-empty name."""
        return any((file and fits(file)) or (function and fits(function)) for fits in self._fitting)


InAppRules = tuple[InAppRule, ...]


def apply_in_app_rules(event: GroupingEvent, in_app_rules: InAppRules) -> GroupingEvent:
    """A copy of the event with its frames marked by the first matching mark."""
    return replace(event, error=_apply_to_error(event.error, in_app_rules)) if in_app_rules else event


def _apply_to_error(error: GroupingError, in_app_rules: InAppRules) -> GroupingError:
    stack = None if error.stack is None else [_apply_to_frame(frame, in_app_rules) for frame in error.stack]
    cause = None if error.cause is None else _apply_to_error(error.cause, in_app_rules)
    return replace(error, stack=stack, cause=cause)


def _apply_to_frame(frame: GroupingFrame, in_app_rules: InAppRules) -> GroupingFrame:
    in_app = _in_app(in_app_rules, (frame.function or "")[:CHARACTERS], (frame.file or "")[:CHARACTERS])
    if in_app is None:
        return frame
    if not in_app:
        return replace(frame, in_app=False)
    return OwnFrame(frame.function, frame.file, frame.line, frame.column, True)


@lru_cache(maxsize=_REMEMBERED)
def _in_app(in_app_rules: InAppRules, function: str, file: str) -> bool | None:
    """The value of the first matching mark; cached, since events of an issue share their frames."""
    return next((rule.in_app for rule in in_app_rules if rule.matches(function, file)), None)
