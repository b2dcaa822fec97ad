"""The verdict on an issue between two releases."""

import pytest

from storage.read.counts.release_comparison import verdict


@pytest.mark.parametrize(
    ("old", "new", "before", "after", "found"),
    [
        (0, 3, 1000, 1000, "new"),
        (3, 0, 1000, 1000, "gone"),
        (10, 20, 1000, 1000, "worse"),
        (20, 10, 1000, 1000, "better"),
        (10, 14, 1000, 1000, "same"),
        # Twice as many events of twice as many: nothing changed.
        (10, 20, 1000, 2000, "same"),
        (10, 10, 1000, 4000, "better"),
        # So few say nothing.
        (1, 5, 1000, 1000, "same"),
    ],
)
def test_an_issue_is_judged_by_its_share(old: int, new: int, before: int, after: int, found: str) -> None:
    assert verdict(old, new, before, after) == found
