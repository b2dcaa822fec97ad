"""The order of releases `<app>@<version>+<build>`, never as strings. Pure.

Semantic version and build decide where the names have both.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, NamedTuple

from schemas.releases import split_release

_VERSION: Final = re.compile(
    r"v?(\d{1,18}(?:\.\d{1,18}){0,3})(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?", re.ASCII
)
_PARTS: Final = 4
Rank = tuple[tuple[int, ...], tuple[tuple[int, int, str], ...]]
_FINAL: Final = ((2, 0, ""),)
"""Sorts after every identifier of a pre-release."""


class ParsedRelease(NamedTuple):
    """The parts of a release. `rank` is None where the version can't be parsed."""

    app: str
    rank: Rank | None
    build: str


@lru_cache(maxsize=4096)
def parse(release: str) -> ParsedRelease:
    """The parts of a release.

    A version has one to four numbers, missing ones being 0: app stores ask for two, Windows for four; a pre-release
    follows the rules of semver.org.
    """
    app, version, build = split_release(release)
    match = _VERSION.fullmatch(version)
    if match is None:
        return ParsedRelease(app, None, build)
    numbers = [int(number) for number in match[1].split(".")]
    numbers += [0] * (_PARTS - len(numbers))
    pre_release = tuple(_identifier(text) for text in match[2].split(".")) if match[2] else _FINAL
    return ParsedRelease(app, (tuple(numbers), pre_release), build)


def compare(left: str, right: str) -> int | None:
    """Negative, 0 or positive where `left` is older, the same or newer; None where their names don't decide."""
    if left == right:
        return 0
    a, b = parse(left), parse(right)
    if a.app != b.app or a.rank is None or b.rank is None:
        return None
    if a.rank != b.rank:
        return 1 if a.rank > b.rank else -1
    if a.build == b.build:
        return 0
    if _is_number(a.build) and _is_number(b.build):
        return (int(a.build) > int(b.build)) - (int(a.build) < int(b.build))
    return None


def newest_by_app(releases: Iterable[str]) -> tuple[str, ...]:
    """The newest versioned release of each app.

    Of equal versions it is the highest build number, else the later one in the list.
    """
    newest: dict[str, tuple[tuple[Rank, int], str]] = {}
    for release in releases:
        app, rank, build = parse(release)
        if rank is None:
            continue
        order = (rank, int(build) if _is_number(build) else -1)
        if app not in newest or order >= newest[app][0]:
            newest[app] = (order, release)
    return tuple(release for _, release in newest.values())


def highest(releases: Iterable[str]) -> list[str]:
    """The releases without those that have a lower build number than another of the same version."""
    newest: dict[object, str] = {}
    for release in releases:
        app, rank, build = parse(release)
        kind = (app, rank) if rank is not None and _is_number(build) else release
        before = newest.pop(kind, release)
        # Inserted at the end: callers keep the last ones.
        newest[kind] = before if (compare(release, before) or 0) < 0 else release
    return list(newest.values())


def _identifier(text: str) -> tuple[int, int, str]:
    """A number sorts by value and before every word."""
    return (0, int(text), "") if _is_number(text) else (1, 0, text)


def _is_number(text: str) -> bool:
    return len(text) <= 18 and text.isascii() and text.isdecimal()
