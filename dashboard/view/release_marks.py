"""The first events of releases as marks of a chart."""

from collections.abc import Sequence
from typing import Final

from dashboard.view.charts import Mark
from schemas.times import parse_iso
from storage.answers import Release

KIND: Final = "release"


def release_marks(releases: Sequence[Release], like: str = "") -> list[Mark]:
    """The moments when releases were first seen; with `like`, a release, only those of the same application."""
    return [
        Mark(parse_iso(release.first_seen), release.release, KIND, "first seen")
        for release in releases
        if not like or _application(release.release) == _application(like)
    ]


def _application(release: str) -> str:
    """The name in `name@version+build`; all of what has another form are one."""
    return release.rpartition("@")[0]
