"""The calls of one page look an issue up once; calls of other pages again."""

import asyncio
from typing import Any

import pytest

from storage.errors import NotFound
from storage.read.execute import Executor, Limits, Rows, Sql
from storage.read.issue_rows import IssueRow
from storage.read.reader import ReadCall, Reader, Session

ISSUE = "00000000000000aa"
FOUND: tuple[Any, ...] = (7, 0xAA, [1], *[""] * 5, 0, 0, 0, 5, 1, "", "", [], "", "", "", 0, 0, [], [])
"""The columns of `WHOLE_ISSUE`."""


class Row(ReadCall[IssueRow], frozen=True):
    """An issue, as many calls begin."""

    async def fetch(self, session: Session) -> IssueRow:
        return await session.issue(ISSUE)


class Counting(Executor):
    """Answers each statement with the same rows, once it is let go."""

    def __init__(self, *found: tuple[Any, ...]) -> None:
        super().__init__(["http://nowhere/svc"], Limits())
        self.statements = 0
        self.go = asyncio.Event()
        self._found = found

    async def rows(self, _sql: Sql) -> Rows:
        self.statements += 1
        await self.go.wait()
        return self._found


async def test_calls_of_a_page_share_the_look_up_of_an_issue_and_the_next_page_looks_again() -> None:
    executor = Counting(FOUND)
    executor.go.set()
    reader = Reader(executor)
    for number in (1, 2):
        page = reader.for_page()
        rows = await asyncio.gather(*(page.read(Row()) for _ in range(5)))
        assert [row.project_id for row in rows] == [7] * 5
        assert executor.statements == number


async def test_a_cancelled_call_leaves_the_look_up_to_the_others() -> None:
    executor = Counting(FOUND)
    page = Reader(executor).for_page()
    first, second = (asyncio.ensure_future(page.read(Row())) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    executor.go.set()
    assert (await second).project_id == 7
    assert first.cancelled()


async def test_who_shares_a_look_up_shares_its_error() -> None:
    executor = Counting()
    executor.go.set()
    page = Reader(executor).for_page()
    found = await asyncio.gather(*(page.read(Row()) for _ in range(3)), return_exceptions=True)
    assert [type(one) for one in found] == [NotFound] * 3
    with pytest.raises(NotFound):
        await page.read(Row())
