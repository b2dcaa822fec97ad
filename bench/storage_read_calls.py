"""The measured read calls with their targets in ms: warm p95, for projects with 7 % and with 26 % of all events."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from msgspec import Struct

from storage.read.counts.count_calls import GetIssueStats, GetProjectStats
from storage.read.counts.counts import issue_counts
from storage.read.counts.tag_calls import CountIssueTags
from storage.read.events.event_calls import ListIssueEvents
from storage.read.events.event_detail import GetIssueEvent, GetProjectEvent
from storage.read.execute import Executor, Limits, Rows, Sql
from storage.read.issue_rows import IssueRow
from storage.read.issues import issue_list
from storage.read.issues.issue_list import ListIssues
from storage.read.reader import ReadCall, Reader, Session

Call = Callable[[], Awaitable[object]]


class Recorder(Executor):
    """An executor that records its statements."""

    def __init__(self, url: str, limits: Limits) -> None:
        super().__init__([url], limits)
        self.seen: list[Sql] = []

    async def rows(self, sql: Sql) -> Rows:
        """The rows of an answer."""
        self.seen.append(sql)
        return await super().rows(sql)


class Measured(Struct, frozen=True):
    """A call and its targets for the two projects."""

    name: str
    call: Call
    target: tuple[int, int]


async def calls(reader: Reader, session: Session, project: int) -> list[Measured]:
    """The calls. The issue is the project's largest, the event one of its newest."""
    page = await reader.read(ListIssues(project, sort="events"))
    issue = page.issues[0].id
    newest = await reader.read(ListIssueEvents(issue, limit=10))
    event = newest.events[5].id
    word, part = _words(page.issues[20].message)
    question = session.question(project)
    rows = [
        IssueRow(*columns)
        for _, *columns in await session.rows(issue_list.page_by_time(question, "lastSeen", 50, None))
    ]
    figures = issue_counts(question, {row.issue_id: row.fingerprints for row in rows})
    reads: dict[str, tuple[ReadCall[Any], tuple[int, int]]] = {
        "series of the project": (GetProjectStats(project), (10, 15)),
        "series of an issue": (GetIssueStats(issue), (10, 15)),
        "event by id, with its neighbours": (GetIssueEvent(issue, event), (20, 25)),
        "event of the project by id": (GetProjectEvent(project, event), (20, 25)),
        "latest event, with its neighbours": (GetIssueEvent(issue, "latest"), (100, 120)),
        "issues, feature:f3 (1 of 40)": (ListIssues(project, "feature:f3"), (120, 250)),
        "issues, session:77 (1 of 100,000)": (ListIssues(project, "session:77"), (120, 250)),
        "issues, a word": (ListIssues(project, word), (120, 200)),
        "issues, a part of a word": (ListIssues(project, part), (200, 300)),
        "facets of an issue": (CountIssueTags(issue), (100, 120)),
        "issues by users": (ListIssues(project, sort="users"), (300, 450)),
    }
    return [
        Measured("issues", lambda: reader.read(ListIssues(project)), (20, 25)),
        Measured("figures and small series of 50 issues", lambda: session.rows(figures), (10, 10)),
        *(Measured(name, partial(reader.read, call), target) for name, (call, target) in reads.items()),
    ]


def _words(message: str) -> tuple[str, str]:
    """A word of a message like `Cannot read a b while saving c 123`, and a phrase with parts of words."""
    before, after = message.split(" while ", 1)
    *_, first, second = before.split()
    last = after.split()[1]
    return second, f'"{first[1:]} {second[:-1]}*{last[1:]}"'
