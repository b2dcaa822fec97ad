"""Selects the deciding frames of a stack."""

from collections.abc import Sequence
from typing import NamedTuple

from grouping.fingerprint import javascript
from grouping.fingerprint.built_files import is_minified
from grouping.fingerprint.event_view import GroupingError, GroupingFrame
from grouping.fingerprint.frames import Family, FrameRole, Site
from grouping.fingerprint.raised import is_assertion, is_too_deep
from grouping.fingerprint.sites import site_of

# V8 shows ten frames: the last calls of the cycle, and eight of the cycle.
_CALLED = 2
_FRAMES_OF_CYCLES = 8
_LONGEST_CYCLE = 4
_REFLECTION = ("sun.reflect.", "jdk.internal.reflect.", "java.lang.reflect.")
# Maximum length of an error class.
_TYPE_CHARACTERS = 200
# A whole stack, and less than a chain of causes may have: bounds the cost of an event.
_FRAMES_LOOKED_AT = 100
# The tops of the outer stacks are read nevertheless.
_FRAMES_OF_EACH = 4
# V8 has ten frames by default; deeper frames of other engines would not match it.
_FRAMES_OF_V8 = 10
# A frame that isn't the app's decides only near the top; the bottom frames are the same in every stack.
_NEAR_THE_TOP = 12
# How far below an anonymous frame a name is searched.
_LOOKED_AT = 8


class ErrorSite(NamedTuple):
    """Where an error is: the deciding sites, topmost first, and whose code they are."""

    sites: tuple[Site, ...]
    role: FrameRole
    minified: bool
    """Whether the app's frames point into a JavaScript build instead of source text."""
    called: bool = False
    """Whether the app's frame called the platform, which raised the error."""
    helpers: tuple[Site, ...] = ()
    """The fallback if no frame decides: the first machinery frames."""


ErrorLocation = tuple[int | None, list[ErrorSite]]
"""The index of the deciding error of a chain, and the sites that were read; see `error_sites_of`."""

NOWHERE = ErrorSite((), FrameRole.SKIPPED, minified=False)


def error_sites_of(platform: str | None, chain: Sequence[GroupingError]) -> ErrorLocation:
    """The deciding error of a chain (outermost first), and the sites of the errors read to find it.

    It is the deepest whose stack shows the app; else the deepest that shows a library, then the platform; None where no
    stack shows anything. Errors between the outermost and the deciding one stay NOWHERE.
    """
    error_sites = [NOWHERE] * len(chain)
    left = _FRAMES_LOOKED_AT
    for index in range(len(chain) - 1, -1, -1):
        stack = chain[index].stack
        if stack:
            error_sites[index] = error_site_of(platform, chain[index], left)
            left = max(_FRAMES_OF_EACH, left - len(stack))
        if error_sites[index].role is FrameRole.APP:
            if index:
                error_sites[0] = error_site_of(platform, chain[0], left)
            return index, error_sites
    for role in (FrameRole.LIBRARY, FrameRole.PLATFORM):
        for index in range(len(error_sites) - 1, -1, -1):
            if error_sites[index].role is role:
                return index, error_sites
    return None, error_sites


def error_site_of(platform: str | None, error: GroupingError, limit: int) -> ErrorSite:
    """The deciding sites of one error: the app's first, else a library's, else the platform's."""
    if not error.stack:
        return NOWHERE
    stack = error.stack[:limit]
    kind = (error.type or "")[:_TYPE_CHARACTERS]
    if is_assertion(kind):
        test = _test_sites(platform, stack)
        if test:
            return ErrorSite(test, FrameRole.APP, minified=False)
    app, first, minified = _looked_through(platform, stack, kind)
    if app and is_too_deep(kind) and app[0].family is not Family.NATIVE:
        cycle = _cycle(platform, stack)
        app = [min(cycle, key=lambda site: site.text)] if cycle else app
    if app:
        return ErrorSite(_deciding_sites(app, minified), FrameRole.APP, minified, FrameRole.PLATFORM in first)
    for role in (FrameRole.LIBRARY, FrameRole.PLATFORM):
        if role in first:
            return ErrorSite((first[role],), role, minified=False)
    return (
        ErrorSite((), FrameRole.SKIPPED, minified=False, helpers=(first[FrameRole.SKIPPED],))
        if first
        else NOWHERE
    )


def _looked_through(
    platform: str | None, stack: Sequence[GroupingFrame], kind: str
) -> tuple[list[Site], dict[FrameRole, Site], bool]:
    """The app's sites down to a sufficient one, the first of each other role, and whether the app is a build."""
    app: list[Site] = []
    first: dict[FrameRole, Site] = {}
    minified = False
    for position, frame in enumerate(stack):
        if app and position >= _FRAMES_OF_V8 and app[0].family is Family.JAVASCRIPT:
            break
        site = site_of(platform, frame)
        if site.role is not FrameRole.APP:
            if position < _NEAR_THE_TOP:
                first.setdefault(site.role, site)
            continue
        if site.family is Family.JAVASCRIPT:
            minified = minified or is_minified(frame)
            # SpiderMonkey shows the awaiting callers, with an asterisk; other engines don't.
            if app and minified and "*" in (frame.function or ""):
                break
            if _constructs(site, kind):
                continue
        app.append(site)
        if _enough(site, minified) or len(app) == _LOOKED_AT:
            break
    return app, first, minified


def _cycle(platform: str | None, stack: Sequence[GroupingFrame]) -> list[Site]:
    """The app's sites that call each other in turn; the stack ends anywhere in the cycle, so it is one place."""
    sites = [
        site
        for frame in stack[: 2 * _FRAMES_OF_CYCLES]
        if (site := site_of(platform, frame)).role is FrameRole.APP
    ]
    for start in range(_CALLED + 1):
        cycling = sites[start : start + _FRAMES_OF_CYCLES]
        for length in range(1, _LONGEST_CYCLE + 1):
            if len(cycling) == _FRAMES_OF_CYCLES and cycling[length:] == cycling[:-length]:
                return cycling[:length]
    return []


def _constructs(site: Site, kind: str) -> bool:
    """The stack without the error's own constructor (possibly numbered by a bundler), which some engines show."""
    return site.name[:1].isupper() and site.name.rstrip("0123456789_") == kind


def _enough(site: Site, minified: bool) -> bool:
    if minified:
        return javascript.survives_minifying(site.name)
    return not site.vague


def _deciding_sites(app: list[Site], minified: bool) -> tuple[Site, ...]:
    """The topmost frame; for a vague one also the first below it that isn't vague."""
    if len(app) > 1 and _enough(app[-1], minified):
        return (app[0], app[-1])
    return (app[0],)


def _test_sites(platform: str | None, stack: list[GroupingFrame]) -> tuple[Site, ...]:
    """The asserting frame, and the test: the last frame of the app above the runner's reflective call."""
    top: Site | None = None
    last: Site | None = None
    for frame in stack:
        site = site_of(platform, frame)
        if site.role is FrameRole.APP or (site.role is FrameRole.LIBRARY and site.marked):
            top = top or site
            last = site
        elif top is not None and last is not None and (frame.function or "").startswith(_REFLECTION):
            return (top,) if top == last else (top, last)
    return ()
