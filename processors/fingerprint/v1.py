"""Grouping mechanism v1: error type and the first cleaned frames of the app, else the message's template."""

from processors.fingerprint.forms import ErrorForm, Frame, GroupingEvent


def decide(event: GroupingEvent) -> tuple[str, tuple[str, ...]]:
    """The step that decided ("stack" or "message") and the parts to hash."""
    error = event.error
    frame = deciding_frame(error)
    if frame is not None:
        return "stack", (f"type {error.type}", f"frame {frame.function} in {frame.file}")
    return "message", (f"type {error.type}", f"message {(error.message or '')[:200]}")


def deciding_frame(error: ErrorForm) -> Frame | None:
    """The frame that names the place of the error."""
    stack = error.stack or []
    return next((frame for frame in stack if frame.in_app), stack[0] if stack else None)


def culprit(event: GroupingEvent) -> str:
    """The deciding frame, for people: `function in file`, or an empty text."""
    frame = deciding_frame(event.error)
    if frame is None:
        return ""
    return f"{frame.function or '<anonymous>'} in {frame.file}"
