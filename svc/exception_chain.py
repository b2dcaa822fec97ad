"""Reads an exception chain in the capturing thread: types, messages and call sites, no locals or arguments.

Only mutable state is read here. Code objects are immutable, so `frames` reads sources and names frames later, in the
background thread.
"""

import contextlib
import linecache
from collections import deque
from types import CodeType, FrameType, TracebackType
from typing import NamedTuple

from svc.exceptions import members_of, name_of, notes_of, origin_of, traceback_of
from svc.limits import CAUSES, FRAMES, MESSAGE_CHARS
from svc.plain import clip, text_of

_HALF = FRAMES // 2
_GROUP_MEMBERS = 10
_NOTES = 20


class CallSite(NamedTuple):
    """A position in the code: code object, line, instruction index (-1: unknown), module name."""

    code: CodeType
    line: int
    instruction: int
    module: str | None


class ExceptionInfo(NamedTuple):
    """One exception of a chain; its call sites with the most recent call first."""

    type: str
    message: str
    sites: list[CallSite]
    trimmed: tuple[str, ...] = ()
    """What was left out: its `frames`, its `causes`."""


def chain(error: BaseException, caller: FrameType | None = None) -> list[ExceptionInfo]:
    """The exception and its causes, outermost first: at most 10 causes, cycles cut.

    `caller` supplies the call sites of an exception that was never raised.
    """
    links: list[ExceptionInfo] = []
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen and len(links) <= CAUSES:
        seen.add(id(current))
        sites, frames = _sites(traceback_of(current))
        trimmed = ("frames",) if len(sites) < frames else ()
        links.append(ExceptionInfo(name_of(current), _message(current), sites, trimmed))
        current = origin_of(current)
    if current is not None and id(current) not in seen:
        links[-1] = links[-1]._replace(trimmed=(*links[-1].trimmed, "causes"))
    if not links[0].sites and caller is not None:
        links[0] = links[0]._replace(sites=_stack(caller))
    return links


def message_chain(kind: str, message: str, caller: FrameType | None) -> list[ExceptionInfo]:
    """An error that is only a message, at the caller's position."""
    return [ExceptionInfo(clip(kind, 200), clip(message, MESSAGE_CHARS), _stack(caller))]


def _message(error: BaseException) -> str:
    """The exception's message, its notes (PEP 678), and the messages of a group's members."""
    lines = [text_of(error, MESSAGE_CHARS)]
    lines += [text_of(note) for note in notes_of(error, _NOTES)]
    lines += [f"- {name_of(member)}: {text_of(member, 500)}" for member in members_of(error, _GROUP_MEMBERS)]
    return clip("\n".join(lines), MESSAGE_CHARS)


def _sites(traceback: TracebackType | None) -> tuple[list[CallSite], int]:
    """The call sites of a traceback, most recent first, and how many there were.

    Of more than 100 only the first and last fifty are kept.
    """
    frames = 0
    outer: list[CallSite] = []
    inner: deque[CallSite] = deque(maxlen=_HALF)
    while traceback is not None:
        site = _site(traceback.tb_frame, traceback.tb_lineno, traceback.tb_lasti)
        (outer if len(outer) < _HALF else inner).append(site)
        frames += 1
        traceback = traceback.tb_next
    return [*reversed(inner), *reversed(outer)], frames


def _stack(frame: FrameType | None) -> list[CallSite]:
    sites: list[CallSite] = []
    while frame is not None and len(sites) < FRAMES:
        sites.append(_site(frame, frame.f_lineno, frame.f_lasti))
        frame = frame.f_back
    return sites


def _site(frame: FrameType, line: int | None, instruction: int) -> CallSite:
    # A module's globals may be a `dict` subclass: bypass its methods.
    code, names = frame.f_code, frame.f_globals
    if code.co_filename not in linecache.cache and dict.__contains__(names, "__loader__"):
        with contextlib.suppress(Exception):
            linecache.lazycache(code.co_filename, names)
    module = dict.get(names, "__name__")
    return CallSite(
        code,
        max(1, line or code.co_firstlineno or 1),
        instruction,
        module if type(module) is str else None,
    )
