"""The grouping mechanism: error type, engine-neutral error and the app's first cleaned frames; else the message.

Versions share it and differ by how they read names, files and messages (`grouping.fingerprint.versions`).
"""

from collections.abc import Callable
from typing import NamedTuple

from grouping.fingerprint import javascript
from grouping.fingerprint.event_view import GroupingError, GroupingEvent
from grouping.fingerprint.frames import Family, Role, Site
from grouping.fingerprint.javascript_errors import says_it_all
from grouping.fingerprint.stacks import ErrorLocation, ErrorSite, ReadFrame, error_sites_of

# The protocol's limit of the cause chain, plus the error itself.
_CHAIN = 11
_TYPE_CHARACTERS = 200
_MESSAGE_CHARACTERS = 600


class Reading(NamedTuple):
    """How a version reads an event."""

    frame: ReadFrame
    fault: Callable[[str, str], str | None]
    """The engine-neutral key of a JavaScript error, by its type and message; None for an app's own."""
    fault_type: Callable[[str, str], str]
    """The class that counts beside a fault, by its key and the error's class."""
    is_weak: Callable[[str], bool]
    """Whether many places of a program raise a fault."""
    is_weak_in_build: Callable[[str], bool]
    """The same where no function has its name."""
    message: Callable[[str], str]
    """The template of a message without a stack, or beside a frame that says little."""
    headline: Callable[[str], str]
    """The template of a JavaScript error's own message."""
    native_type: Callable[[str], str]
    """One name for the types of a native crash that differ by processor or reporter."""


class Mechanism(NamedTuple):
    """A grouping version; `why` is the reason for it."""

    reading: Reading
    why: str

    def locate(self, event: GroupingEvent) -> ErrorLocation:
        """The error's location by the stacks alone; depends on platform, types and stacks, not on messages."""
        return error_sites_of(event.platform, chain_of(event.error), self.reading.frame)

    def decide(
        self, event: GroupingEvent, location: ErrorLocation | None = None
    ) -> tuple[str, tuple[str, ...]]:
        """The deciding step, "stack" or "message", and the parts to hash; `location` is the result of `locate`, if known."""
        chain = chain_of(event.error)
        index, error_sites = location or self.locate(event)
        if index is None:
            return "message", self._message_parts(event.platform, chain, error_sites)
        parts = self._stack_parts(chain[index], error_sites[index])
        if index:
            parts = [*_outer_parts(chain[0], error_sites[0]), *[f"cause {part}" for part in parts]]
        return "stack", tuple(parts)

    def culprit(self, event: GroupingEvent, location: ErrorLocation | None = None) -> str:
        """The deciding frame for people: `function in file`, or empty."""
        index, error_sites = location or self.locate(event)
        return "" if index is None else error_sites[index].sites[0].text

    def _message_parts(
        self, platform: str | None, chain: list[GroupingError], error_sites: list[ErrorSite]
    ) -> tuple[str, ...]:
        top, root = chain[0], chain[-1]
        known = self.reading.fault(_type(root), _message(root)) if platform == "javascript" else None
        parts = [f"type {_type(top)}"]
        if root is not top:
            parts.append(f"cause type {_type(root)}")
        # A template would drop the only word in a quoting engine's message.
        named = known is not None and (says_it_all(known) or not self.reading.is_weak(known))
        parts.append(f"fault {known}" if named else f"message {self.reading.message(_message(root))}")
        parts.extend([f"frame {helper.text}" for error_site in error_sites for helper in error_site.helpers])
        return tuple(parts)

    def _stack_parts(self, error: GroupingError, error_site: ErrorSite) -> list[str]:
        site = error_site.sites[0]
        if site.family is Family.JAVASCRIPT:
            return self._javascript_parts(error, error_site)
        kind = _type(error)
        if site.family is Family.NATIVE:
            kind = self.reading.native_type(kind)
        parts = [f"type {kind}", *_frame_parts(error_site.sites)]
        # The message of a native crash has the address; other messages distinguish errors in a common library frame.
        if site.family is not Family.NATIVE and (site.vague or error_site.role is not Role.APP):
            parts.append(f"message {self.reading.message(_message(error))}")
        return parts

    def _javascript_parts(self, error: GroupingError, error_site: ErrorSite) -> list[str]:
        message = _message(error)
        known = self.reading.fault(_type(error), message)
        kind = _type(error)
        if known is None:
            first_part = f"message {self.reading.headline(message)}"
        else:
            kind = self.reading.fault_type(known, kind)
            first_part = f"fault {known}"
        if error_site.minified:
            return [
                f"type {kind}",
                first_part,
                f"file {error_site.sites[0].file}",
                *self._surviving_parts(known, error_site.sites),
            ]
        if known is not None and known.startswith(("call.", "new.")):
            # Hermes omits the called name; a frame with a name suffices.
            first_part = f"fault {known.partition('.')[0]}"
        return [f"type {kind}", first_part, *_frame_parts(error_site.sites)]

    def _surviving_parts(self, known: str | None, sites: tuple[Site, ...]) -> list[str]:
        """The nearest unminified name, which distinguishes errors without a name in a build."""
        name = sites[-1].name
        if known is not None and self.reading.is_weak_in_build(known) and javascript.survives_minifying(name):
            return [f"near {name}"]
        return []


def chain_of(error: GroupingError) -> list[GroupingError]:
    """The error and its causes, outermost first."""
    chain = [error]
    while error.cause is not None and len(chain) < _CHAIN:
        error = error.cause
        chain.append(error)
    return chain


def _outer_parts(error: GroupingError, error_site: ErrorSite) -> list[str]:
    """The type of the error thrown last, and its site if reliable."""
    parts = [f"type {_type(error)}"]
    if error_site.role is Role.APP and not error_site.minified and not error_site.sites[0].vague:
        parts.append(f"frame {error_site.sites[0].text}")
    return parts


def _frame_parts(sites: tuple[Site, ...]) -> list[str]:
    return [f"frame {site.text}" for site in sites]


def _type(error: GroupingError) -> str:
    return (error.type or "")[:_TYPE_CHARACTERS]


def _message(error: GroupingError) -> str:
    return (error.message or "")[:_MESSAGE_CHARACTERS]
