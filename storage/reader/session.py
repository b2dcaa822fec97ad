"""What all read calls share: the clock, ClickHouse, and how an issue's id becomes its row."""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from storage.errors import NotFound
from storage.reader.execute import Executor, Rows
from storage.reader.identifiers import issue_number
from storage.reader.issue_lookup import ISSUE_REF, IssueRef, issue_by_id
from storage.reader.issue_rows import COLUMNS, IssueRow, read_row
from storage.reader.parameters import Sql
from storage.reader.question import Question, question
from storage.reader.ranges import Range, resolve_range

_MERGES: Final = 16
"""Merges of merges that are followed to the issue that has the events now."""
_REMEMBERED: Final = 50_000
"""Issues whose project is kept: a few MB."""
ALWAYS: Final = Range(0, None)
Found = TypeVar("Found", IssueRow, IssueRef)


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
        return question(project, query, resolve_range(start, end, now_ms), now_ms)

    def question_ever(self, project: int, query: str, start: int | None, end: int | None) -> Question:
        """A question over a range, by default everything that is kept. Raises BadQuery."""
        return self.question(project, query, ALWAYS.start if start is None else start, end)

    async def issue(self, issue: str) -> IssueRow:
        """The row of an issue, or of the one that it was merged into. Raises NotFound."""
        return await self._followed(issue_number(issue), None, COLUMNS, read_row)

    async def issue_ref(self, issue: str, project: int | None = None) -> IssueRef:
        """As `issue`, of the columns that finding its events takes; faster where its project is known."""
        return await self._followed(issue_number(issue), project, ISSUE_REF, lambda row: IssueRef(*row))

    def known_project(self, issue: int) -> int | None:
        """The project of an issue that was asked for before."""
        return self._projects.get(issue)

    async def _followed(
        self, number: int, project: int | None, columns: str, read: Callable[[Sequence[Any]], Found]
    ) -> Found:
        for _ in range(_MERGES):
            known = self._projects.get(number, project)
            rows = await self.rows(issue_by_id(number, known, columns))
            if not rows:
                break
            row = read(rows[0])
            self._remember(number, row.project_id)
            if not row.merged_into:
                return row
            # A merge stays within its project.
            number, project = row.merged_into, row.project_id
        raise NotFound("there is no such issue")

    def _remember(self, issue: int, project: int) -> None:
        """Keep the project of an issue, which never changes."""
        if len(self._projects) >= _REMEMBERED:
            self._projects.clear()
        self._projects[issue] = project
