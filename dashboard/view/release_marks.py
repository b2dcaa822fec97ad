"""The first events of releases as marks of a chart, and the newest release."""

from collections.abc import Iterable, Sequence
from typing import Final

from dashboard.view.charts import Mark
from schemas.read_api import Release
from schemas.release_order import newest_by_app
from schemas.releases import split_release
from schemas.times import parse_iso

KIND: Final = "release"


def release_marks(releases: Iterable[Release]) -> list[Mark]:
    """The moments when releases were first seen."""
    return [Mark(parse_iso(release.first_seen), release.release, KIND, "first seen") for release in releases]


def suggested(releases: Sequence[Release]) -> list[str]:
    """The names that a field may offer, without those that have invisible characters."""
    return [release.release for release in releases if release.release and release.release.isprintable()]


def newest_like(releases: Sequence[Release], like: str) -> str:
    """The newest release of the application of an issue's release `like`.

    Returns `like` itself where the others' names say nothing.
    """
    names = (release.release for release in reversed(releases))
    newest = newest_by_app([like, *names])
    return next((name for name in newest if split_release(name).app == split_release(like).app), like)
