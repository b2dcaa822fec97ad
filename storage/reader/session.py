"""What all read calls share: the clock, ClickHouse, and how an issue's id becomes its row."""

from collections.abc import Callable
from typing import Final

from storage.query.parameters import Sql
from storage.reader.errors import NotFound
from storage.reader.execute import Executor, Rows
from storage.reader.identifiers import issue_number
from storage.reader.issue_lookup import issue_by_id
from storage.reader.issue_rows import IssueRow, read_row
from storage.reader.question import Question, question
from storage.reader.ranges import Range, asked_range

_MERGES: Final = 16
"""Merges of merges that are followed to the issue that has the events now."""
_REMEMBERED: Final = 50_000
"""Issues whose project is kept: a few MB."""
ALWAYS: Final = Range(0, None)


class Session:
    """Passed to the functions of each call."""

    def __init__(self, executor: Executor, now_ms: Callable[[], int]) -> None:
        self.executor = executor
        self.now_ms = now_ms
        self._projects: dict[int, int] = {}

    async def rows(self, sql: Sql) -> Rows:
        """The rows of an answer. Raises QueryTooExpensive or StorageUnavailable."""
        return await self.executor.rows(sql)

    def question(self, project: int, query: str, start: int | None, end: int | None) -> Question:
        """A question over a range, by default the last 14 days. Raises BadQuery."""
        now_ms = self.now_ms()
        return question(project, query, asked_range(start, end, now_ms), now_ms)

    def question_ever(self, project: int, query: str, start: int | None, end: int | None) -> Question:
        """A question over a range, by default everything that is kept. Raises BadQuery."""
        return self.question(project, query, ALWAYS.start if start is None else start, end)

    async def issue(self, issue: str) -> IssueRow:
        """The row of an issue, or of the one that it was merged into. Raises NotFound."""
        number = issue_number(issue)
        for _ in range(_MERGES):
            rows = await self.rows(issue_by_id(number, self._projects.get(number)))
            if not rows:
                break
            row = read_row(rows[0])
            self._remember(number, row.project_id)
            if not row.merged_into:
                return row
            number = row.merged_into
        raise NotFound("there is no such issue")

    def _remember(self, issue: int, project: int) -> None:
        """Keep the project of an issue, which never changes."""
        if len(self._projects) >= _REMEMBERED:
            self._projects.clear()
        self._projects[issue] = project
