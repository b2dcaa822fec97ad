"""Each read call is a struct whose `fetch` reads from ClickHouse, and `Reader.read` runs any of them.

`project` is the project's number, `issue` sixteen hexadecimal digits, `event` a uuid as text. `start`
(inclusive) and `end` (exclusive) are Unix milliseconds of the event's time; by default a range starts at the
full hour 14 days ago and has no end. A merged issue can be read by the id of any of its parts. Every call may
raise BadQuery, NotFound, QueryTooExpensive and StorageUnavailable, those for one event also DamagedPayload;
all are ReadError.
"""

import asyncio
import copy
import time
from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar

from msgspec import Struct

from storage.errors import NO_ISSUE, BadQuery, NotFound
from storage.read.execute import Executor, Limits, Sql
from storage.read.issue_rows import WHOLE_ISSUE, IssueRow, issue_by_id, issue_number
from storage.read.query.question import Question, question
from storage.read.query.ranges import resolve_range

MAX_LIMIT: Final = 500
_MAX_MERGE_HOPS: Final = 16
PING: Final = Sql("SELECT 1 FROM projects LIMIT 0", {})
_MAX_CACHED_PROJECTS: Final = 50_000
"""Issues whose project is cached: a few MB."""
A = TypeVar("A")
A_co = TypeVar("A_co", covariant=True)


class Session:
    """Shared by all read calls: the clock, ClickHouse, and the lookup of issues by id."""

    def __init__(self, executor: Executor, now_ms: Callable[[], int]) -> None:
        self.rows = executor.rows
        self.now_ms = now_ms
        self.projects: dict[int, int] = {}
        """The projects of issues that were read before."""

    def question(
        self, project: int, query: str = "", start: int | None = None, end: int | None = None
    ) -> Question:
        """A question over a range, by default the last 14 days. Raises BadQuery."""
        now_ms = self.now_ms()
        return question(project, query, resolve_range(start, end, now_ms), now_ms)

    def question_ever(
        self, project: int, query: str = "", start: int | None = None, end: int | None = None
    ) -> Question:
        """A question over a range, by default all stored events. Raises BadQuery."""
        return self.question(project, query, 0 if start is None else start, end)

    async def issue(self, issue: str, project: int | None = None) -> IssueRow:
        """The row of an issue, or of the issue it was merged into; faster if its project is given.

        Raises NotFound.
        """
        number = issue_number(issue)
        for _ in range(_MAX_MERGE_HOPS):
            rows = await self.rows(issue_by_id(number, self.projects.get(number, project), WHOLE_ISSUE))
            if not rows:
                break
            row = IssueRow(*rows[0])
            # The project of an issue never changes.
            if len(self.projects) >= _MAX_CACHED_PROJECTS:
                self.projects.clear()
            self.projects[number] = row.project_id
            if not row.merged_into:
                return row
            # Issues are merged only within a project.
            number, project = row.merged_into, row.project_id
        raise NotFound(NO_ISSUE)


class PageSession(Session):
    """A session for the calls of one page.

    The calls begin together and are mostly about one issue: it is looked up once.
    """

    def __init__(self, session: Session) -> None:
        self.rows, self.now_ms, self.projects = session.rows, session.now_ms, session.projects
        self._issues: dict[tuple[str, int | None], asyncio.Future[IssueRow]] = {}

    async def issue(self, issue: str, project: int | None = None) -> IssueRow:
        """As of `Session`."""
        running = self._issues.get((issue, project))
        if running is None:
            running = self._issues[issue, project] = asyncio.ensure_future(super().issue(issue, project))
        # The call that asked first may be cancelled while others wait.
        return await asyncio.shield(running)


class ReadCall(Struct, Generic[A_co], frozen=True):
    """The parameters of a read."""

    async def fetch(self, session: Session) -> A_co:
        """Read the answer from ClickHouse."""
        raise NotImplementedError


class RangeCall(ReadCall[A_co], Generic[A_co], frozen=True):
    """A read of a project's events in a range."""

    project: int
    start: int | None = None
    end: int | None = None

    def question(self, session: Session) -> Question:
        """The question over the range. Raises BadQuery."""
        return session.question(self.project, "", self.start, self.end)


class ProjectCall(ReadCall[A_co], Generic[A_co], frozen=True):
    """A read of a project's events that are in a range and match a query."""

    project: int
    query: str = ""
    start: int | None = None
    end: int | None = None

    def question(self, session: Session) -> Question:
        """The question over the range. Raises BadQuery."""
        return session.question(self.project, self.query, self.start, self.end)


class IssueCall(ReadCall[A_co], Generic[A_co], frozen=True):
    """A read of an issue's events that are in a range and match a query."""

    issue: str
    query: str = ""
    start: int | None = None
    end: int | None = None

    def question(self, session: Session, project: int) -> Question:
        """The question over the range. Raises BadQuery."""
        return session.question(project, self.query, self.start, self.end)

    def question_ever(self, session: Session, project: int) -> Question:
        """The same, by default over all stored events."""
        return session.question_ever(project, self.query, self.start, self.end)


class Reader:
    """Runs read calls on ClickHouse; one instance serves any number concurrently, on one event loop."""

    def __init__(
        self, executor: Executor, now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    ) -> None:
        self._executor = executor
        self._session = Session(executor, now_ms)

    @classmethod
    def open(cls, urls: Sequence[str], limits: Limits | None = None, *, partial: bool = False) -> "Reader":
        """A reader of the database that any of `urls` leads to; it connects with the first call.

        `partial` is that of `Executor`.
        """
        return cls(Executor(urls, limits or Limits(), partial=partial))

    async def close(self) -> None:
        """Wait for running calls and close all connections."""
        await self._executor.close()

    async def ping(self) -> None:
        """Raises StorageUnavailable if the database doesn't answer, or not to this user."""
        await self._executor.rows(PING)

    async def read(self, call: ReadCall[A]) -> A:
        """The answer of a call. Raises ReadError."""
        return await call.fetch(self._session)

    def for_page(self) -> "Reader":
        """A reader for the calls of one page, as `PageSession`; it isn't closed."""
        reader = copy.copy(self)
        reader._session = PageSession(self._session)
        return reader


def check_limit(limit: int) -> None:
    """Raises BadQuery if the size of a page is not 1 to 500."""
    if not 1 <= limit <= MAX_LIMIT:
        raise BadQuery("limit", f"a number from 1 to {MAX_LIMIT}")
