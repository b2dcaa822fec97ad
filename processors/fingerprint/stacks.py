"""Which frames of a stack decide."""

import re
from typing import NamedTuple

from processors.fingerprint.forms import ErrorForm, Frame
from processors.fingerprint.frames import Family, Role, Site, family_of, is_minified, site_of

# Assertions say where a test noticed, not what is broken: the test is the place.
_ASSERTION = re.compile(
    r"(?:\A|\.)(?:AssertionFailedError|AssertionError|ComparisonFailure|MultipleFailuresError|ArrayComparisonFailure)\Z"
)
_REFLECTION = ("sun.reflect.", "jdk.internal.reflect.", "java.lang.reflect.")

FRAMES = {Family.JAVASCRIPT: 1, Family.JVM: 1, Family.NATIVE: 1, Family.OTHER: 1}


class Place(NamedTuple):
    """Where an error is: the deciding sites, topmost first, and what kind of frames they are."""

    sites: tuple[Site, ...]
    role: Role
    minified: bool


NOWHERE = Place((), Role.SKIPPED, False)


def place_of(platform: str | None, error: ErrorForm) -> Place:
    """The deciding sites of one error of a chain: the app's first, else a library's, else the platform's."""
    stack = error.stack
    if not stack:
        return NOWHERE
    if _ASSERTION.search((error.type or "")[:200]):
        test = _test_frame(platform, stack)
        if test is not None:
            return Place((test,), Role.APP, False)
    chosen: dict[Role, list[Site]] = {}
    minified = False
    constructor = (error.type or "")[:200]
    for frame in stack:
        site = site_of(platform, frame)
        role = site.role
        if role is Role.SKIPPED:
            continue
        if role is Role.APP and site.family is Family.JAVASCRIPT:
            if not minified and is_minified(frame):
                minified = True
            if site.name and constructor and site.name.rstrip("0123456789_") == constructor:
                continue
        sites = chosen.setdefault(role, [])
        if sites and sites[-1] == site:
            continue
        if len(sites) < FRAMES[site.family]:
            sites.append(site)
        elif role is Role.APP and (minified or site.family is not Family.JAVASCRIPT):
            break
    for role in (Role.APP, Role.LIBRARY, Role.PLATFORM):
        if role in chosen:
            return Place(tuple(chosen[role]), role, minified)
    return NOWHERE


def _test_frame(platform: str | None, stack: list[Frame]) -> Site | None:
    """The last frame of the app above the test runner's reflective call."""
    last: Site | None = None
    for frame in stack:
        site = site_of(platform, frame)
        if site.role is Role.APP:
            last = site
        elif last is not None and (frame.function or "").startswith(_REFLECTION):
            return last
    return None
