"""The parts of a release `<app-name>@<version>+<build>` (contract, section 2, point 6)."""

from typing import NamedTuple


class ReleaseParts(NamedTuple):
    """Parts that a release lacks are empty, since lenient projects accept any text."""

    app: str
    version: str
    build: str


def is_release(text: str) -> bool:
    """Whether a text has all three parts, as in `schemas.event.RELEASE_PATTERN`."""
    return all(split_release(text))


def split_release(release: str) -> ReleaseParts:
    """Split at the first `+` (build), and before it at the last `@` (version).

    The app of `@scope/app@1.0.0+7` is `@scope/app`.
    """
    front, _, build = release.partition("+")
    app, _, version = front.rpartition("@")
    return ReleaseParts(app, version, build)
