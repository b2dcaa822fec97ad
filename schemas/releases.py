"""The parts of a release `<app-name>@<version>+<build>` (contract, section 2, point 6)."""

from typing import NamedTuple


class ReleaseParts(NamedTuple):
    """Empty where a release, which lenient projects take in any form, lacks a part."""

    app: str
    version: str
    build: str


def is_release(text: str) -> bool:
    """Whether a text has all three parts, as `schemas.event.RELEASE_PATTERN` says it."""
    return all(split_release(text))


def split_release(release: str) -> ReleaseParts:
    """The first `+` parts off the build, the last `@` before it parts name and version: `@scope/app@1.0.0+7` is `@scope/app`."""
    front, _, build = release.partition("+")
    app, _, version = front.rpartition("@")
    return ReleaseParts(app, version, build)
