"""Which releases the page offers to compare."""

import pytest

from dashboard.pages.releases_page import offered
from schemas.read_api import Release


def release(name: str) -> Release:
    at = "2026-11-01T00:00:00.000Z"
    return Release(release=name, first_seen=at, last_seen=at, events=1, new_issues=0, regressions=0)


@pytest.mark.parametrize(
    ("names", "pair"),
    [
        ([], None),
        (["shop@2.0+1"], None),
        (["shop@2.0+1", "api@7+1", "shop@1.0+1"], ("shop@1.0+1", "shop@2.0+1")),
        (["shop@2.0+1", "api@7+1"], ("api@7+1", "shop@2.0+1")),
        (["2.0", "1.0"], ("1.0", "2.0")),
    ],
)
def test_the_newest_is_compared_with_the_one_before_of_its_application(
    names: list[str], pair: tuple[str, str] | None
) -> None:
    assert offered([release(name) for name in names]) == pair
