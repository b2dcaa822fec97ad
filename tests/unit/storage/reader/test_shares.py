import pytest

from storage.query.parameters import Sql
from storage.reader.errors import StorageUnavailable
from storage.reader.execute import Rows
from storage.reader.shares import Shares

HOUR_MS = 3_600_000


class Counted:
    """Answers with shares, and counts how often it is asked; a database that can be away."""

    def __init__(self, shares: dict[int, float]) -> None:
        self.shares = shares
        self.asked = 0
        self.away = False

    async def rows(self, sql: Sql) -> Rows:
        assert "project_hour" in sql.text
        self.asked += 1
        if self.away:
            raise StorageUnavailable("away")
        return list(self.shares.items())

    async def close(self) -> None:
        pass


async def test_a_project_is_large_by_its_share_of_all_events() -> None:
    shares = Shares(Counted({1: 0.6, 2: 0.4}), lambda: 0)
    assert [await shares.is_large(project) for project in (1, 2, 3)] == [True, False, False]


async def test_shares_are_counted_again_after_an_hour() -> None:
    now, counted = [0], Counted({1: 0.01})
    shares = Shares(counted, lambda: now[0])
    assert not await shares.is_large(1)
    counted.shares = {1: 0.9}
    now[0] = HOUR_MS - 1
    assert not await shares.is_large(1)
    now[0] = HOUR_MS
    assert await shares.is_large(1)
    assert counted.asked == 2


async def test_shares_that_could_not_be_counted_are_asked_for_again() -> None:
    counted = Counted({1: 0.9})
    shares = Shares(counted, lambda: 0)
    counted.away = True
    with pytest.raises(StorageUnavailable):
        await shares.is_large(1)
    counted.away = False
    assert await shares.is_large(1)
