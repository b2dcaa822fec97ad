"""How far a repair may read `grouped`."""

import pytest

from storage.maintain.reconcile.resend import stored_before


@pytest.mark.parametrize(
    ("committed", "end", "before"),
    [
        (7, 7, 7),
        (5, 7, 5),
        (-1, 7, 0),  # nothing was ever committed, so all of it is the writer's
        (9, 7, 0),  # the topic was recreated, and the commit is of the old one
    ],
)
def test_only_records_that_the_writer_has_committed_are_read(committed: int, end: int, before: int) -> None:
    assert stored_before(committed, end) == before
