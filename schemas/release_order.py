"""The order of releases `<app>@<version>+<build>`, never as strings. Pure.

Semantic version and build decide where the names have both.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, NamedTuple

from schemas.releases import split_release

_NUMBERS: Final = r"v?(?P<numbers>\d{1,18}(?:\.\d{1,18}){0,9})"
_SEMVER: Final = re.compile(_NUMBERS + r"(?:-(?P<pre>[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?", re.ASCII)
_PEP440: Final = re.compile(
    _NUMBERS + r"(?:[._-]?(?P<word>alpha|a|beta|b|rc|c|preview|pre)[._-]?(?P<pre>\d{0,18}))?"
    r"(?P<post>[._-]?post[._-]?\d{0,18})?(?P<dev>[._-]?dev[._-]?\d{0,18})?",
    re.ASCII | re.IGNORECASE,
)
_WORDS: Final = {"a": "alpha", "b": "beta", "c": "rc", "pre": "rc", "preview": "rc"}
_COMMIT: Final = re.compile(r"(?!(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01]))[0-9a-f]{7,40}")
"""The hash of a commit, which may happen to have digits only; a date is none."""
_BUILD: Final = re.compile(r"\d{1,18}(?:\.\d{1,18}){0,9}", re.ASCII)
_MAX_DIGITS: Final = 18
Numbers = tuple[int, ...]
"""Without zeros at the end: 1.2 is 1.2.0."""
Rank = tuple[Numbers, tuple[tuple[int, int, str], ...]]
_DEV, _END, _NUMBER, _WORD, _FINAL, _POST = range(6)
"""Kinds of suffixes after the numbers, in order. `_END` is last: alpha.1 is after alpha, and alpha.dev1 before."""


class ParsedRelease(NamedTuple):
    """The parts of a release. `rank` and `build` are None where they can't be parsed."""

    app: str
    rank: Rank | None
    build: Numbers | None


@lru_cache(maxsize=4096)
def parse(release: str) -> ParsedRelease:
    """The parts of a release.

    A version has up to ten numbers: app stores ask for two, Windows for four. A suffix follows
    semver.org, or else Python's PEP 440. A build has numbers too: iOS has 388.0.8.
    """
    app, version, build = split_release(release)
    return ParsedRelease(app, _rank(version), _numbers(build) if _BUILD.fullmatch(build) else None)


def _rank(version: str) -> Rank | None:
    if _COMMIT.fullmatch(version):
        return None
    if match := _SEMVER.fullmatch(version):
        words = [_identifier(text) for text in match["pre"].split(".")] if match["pre"] else [(_FINAL, 0, "")]
    elif match := _PEP440.fullmatch(version):
        word = (match["word"] or "").lower()
        words = [(_WORD, 0, _WORDS.get(word, word)), (_NUMBER, _last(match["pre"]), "")] if word else []
        if match["post"] and not word:
            words.append((_FINAL, 0, ""))
        words += [(_POST, _last(match["post"]), "")] if match["post"] else []
        words += [(_DEV, _last(match["dev"]), "")] if match["dev"] else []
    else:
        return None
    return _numbers(match["numbers"]), (*words, (_END, 0, ""))


def _numbers(text: str) -> Numbers:
    numbers = [int(number) for number in text.split(".")]
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)


def compare(left: str, right: str) -> int | None:
    """Negative, 0 or positive where `left` is older, the same or newer; None where their names don't decide."""
    if left == right:
        return 0
    a, b = parse(left), parse(right)
    if a.app != b.app or a.rank is None or b.rank is None:
        return None
    if a.rank != b.rank:
        return 1 if a.rank > b.rank else -1
    if a.build is not None and b.build is not None:
        return (a.build > b.build) - (a.build < b.build)
    return 0 if split_release(left).build == split_release(right).build else None


def newest_by_app(releases: Iterable[str]) -> tuple[str, ...]:
    """The newest versioned release of each app.

    Of equal versions it is the highest build number, else the later one in the list.
    """
    newest: dict[str, tuple[tuple[Rank, bool, Numbers], str]] = {}
    for release in releases:
        app, rank, build = parse(release)
        if rank is None:
            continue
        order = (rank, build is not None, build or ())
        if app not in newest or order >= newest[app][0]:
            newest[app] = (order, release)
    return tuple(release for _, release in newest.values())


def highest(releases: Iterable[str]) -> list[str]:
    """The releases without those that have a lower build number than another of the same version."""
    newest: dict[object, str] = {}
    for release in releases:
        app, rank, build = parse(release)
        kind = (app, rank) if rank is not None and build is not None else release
        before = newest.pop(kind, release)
        # Inserted at the end: callers keep the last ones.
        newest[kind] = before if (compare(release, before) or 0) < 0 else release
    return list(newest.values())


def _identifier(text: str) -> tuple[int, int, str]:
    """A number sorts by value and before every word."""
    if len(text) <= _MAX_DIGITS and text.isdecimal():
        return _NUMBER, int(text), ""
    return _WORD, 0, text


def _last(text: str) -> int:
    """The number at the end of a text; 0 without one."""
    return int(re.sub(r"\D", "", text) or 0)
