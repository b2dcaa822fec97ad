"""`Reader`: every read call as one method. What each does stands in the modules that it hands over to."""

import time
from collections.abc import Callable, Sequence

from storage.reader import count_calls, event_calls, event_detail, issue_calls, samples, tag_calls
from storage.reader import similar as similar_issues
from storage.reader.answers import (
    ActivityPage,
    EventDetail,
    EventPage,
    Interval,
    Issue,
    IssuePage,
    Keys,
    KeyWarning,
    OutcomeSeries,
    Releases,
    RuleSkipped,
    Sample,
    Series,
    SimilarIssues,
    Sort,
    TagFacets,
    TagValues,
)
from storage.reader.execute import ClickHouseExecutor, Executor, Limits
from storage.reader.issue_rows import IssueRow
from storage.reader.parameters import Sql
from storage.reader.session import Session
from storage.reader.versions import IssueVersion, shown


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class Reader:
    """Answers read calls; one instance serves any number at once, on one event loop.

    `project` is its number, `issue` sixteen hexadecimal digits, `event` a uuid as text. `start` and `end` are Unix milliseconds of the
    event's time, `start` included and `end` not; without them a range begins at the full hour 14 days ago and has no end. Merged issues
    are one: each method takes the id of any of them. Every method may raise BadQuery, NotFound, QueryTooExpensive and StorageUnavailable,
    those for one event DamagedPayload too: all are ReadError.
    """

    def __init__(self, executor: Executor, now_ms: Callable[[], int] = _now_ms) -> None:
        self._session = Session(executor, now_ms)

    @classmethod
    def open(cls, url: str, limits: Limits | None = None) -> "Reader":
        """A reader of the database that the URL names; it connects with the first question."""
        return cls(ClickHouseExecutor(url, limits or Limits()))

    async def close(self) -> None:
        """Wait for running questions and let go of all connections."""
        await self._session.executor.close()

    async def ping(self) -> None:
        """Raises StorageUnavailable where the database doesn't answer."""
        await self._session.rows(Sql("SELECT 1", {}))

    async def project_of(self, issue: str) -> int:
        """The project of an issue. Raises NotFound."""
        return (await self._session.place(issue)).project_id

    async def row(self, issue: str) -> IssueRow:
        """What is stored of an issue, or of the one that it was merged into. Raises NotFound."""
        return await self._session.issue(issue)

    async def shown(self, project: int, issues: Sequence[str]) -> dict[str, IssueVersion]:
        """By issue, which version of it is read at present; for those that are there."""
        return await shown(self._session, project, issues)

    async def similar(self, issue: str, *, limit: int = 10) -> SimilarIssues:
        """Issues whose grouping has most in common with an issue's."""
        return await similar_issues.similar(self._session, issue, limit)

    async def issues(
        self,
        project: int,
        query: str = "",
        *,
        start: int | None = None,
        end: int | None = None,
        sort: Sort = "lastSeen",
        limit: int = 50,
        cursor: str | None = None,
    ) -> IssuePage:
        """A page of the issues that have an event in range and query."""
        return await issue_calls.issues(self._session, project, query, start, end, sort, limit, cursor)

    async def issue(
        self, issue: str, query: str = "", *, start: int | None = None, end: int | None = None
    ) -> Issue:
        """One issue, counted in range and query. Of a merged one: the issue that has its events now."""
        return await issue_calls.issue(self._session, issue, query, start, end)

    async def counted(self, project: int, rows: Sequence[IssueRow]) -> list[Issue]:
        """Issues of a project whose rows are known, counted in the last 14 days."""
        return await issue_calls.counted(self._session, project, rows)

    async def activity(self, issue: str, *, limit: int = 50, cursor: str | None = None) -> ActivityPage:
        """A page of the changes of an issue and of those merged into it, newest first."""
        return await issue_calls.activity(self._session, issue, limit, cursor)

    async def issue_events(
        self,
        issue: str,
        query: str = "",
        *,
        start: int | None = None,
        end: int | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> EventPage:
        """A page of an issue's events, newest first; without a range, of all that are kept."""
        return await event_calls.issue_events(self._session, issue, query, start, end, limit, cursor)

    async def project_events(
        self,
        project: int,
        query: str = "",
        *,
        start: int | None = None,
        end: int | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> EventPage:
        """A page of a project's events, newest first."""
        return await event_calls.project_events(self._session, project, query, start, end, limit, cursor)

    async def issue_event(self, issue: str, event: str) -> EventDetail:
        """An event of an issue by its id, or `latest`, or `oldest`."""
        return await event_detail.issue_event(self._session, issue, event)

    async def project_event(self, project: int, event: str) -> EventDetail:
        """An event of a project by its id, or `latest`, or `oldest`."""
        return await event_detail.project_event(self._session, project, event)

    async def sample(
        self,
        project: int,
        query: str = "",
        *,
        start: int | None = None,
        end: int | None = None,
        limit: int = 500,
    ) -> list[Sample]:
        """The newest events of range and query whose payload is still kept, whole; at most 2,000."""
        return await samples.sample(self._session, project, query, start, end, limit)

    async def issues_by_fingerprint(self, project: int, fingerprints: Sequence[str]) -> dict[str, str]:
        """By fingerprint, the issue that has its events now; of those that belong to one."""
        return await samples.issues_by_fingerprint(self._session, project, fingerprints)

    async def issue_tags(
        self, issue: str, query: str = "", *, start: int | None = None, end: int | None = None
    ) -> TagFacets:
        """The most frequent values of each tag among an issue's events; without a range, of all that are kept."""
        return await tag_calls.issue_tags(self._session, issue, query, start, end)

    async def project_tags(
        self, project: int, query: str = "", *, start: int | None = None, end: int | None = None
    ) -> TagFacets:
        """The most frequent values of each tag among a project's events; without a query by whole days."""
        return await tag_calls.project_tags(self._session, project, query, start, end)

    async def tag_values(self, project: int, key: str, prefix: str = "") -> TagValues:
        """Values of a tag that begin with the prefix, of the last 14 days."""
        return await tag_calls.tag_values(self._session, project, key, prefix)

    async def field_values(self, project: int, field: str, prefix: str = "") -> TagValues:
        """Values of a field of the query language that begin with the prefix, of the last 14 days."""
        return await tag_calls.field_values(self._session, project, field, prefix)

    async def keys(self, project: int, prefix: str = "") -> Keys:
        """Keys that a query may go on with: the language's own, then tags of the last 14 days as a query names them."""
        return await tag_calls.keys(self._session, project, prefix)

    async def unknown_keys(self, project: int, keys: Sequence[str]) -> list[KeyWarning]:
        """Which of these tags no event of the project has, each with the known keys that are most like it."""
        return await tag_calls.unknown_keys(self._session, project, keys)

    async def issue_stats(
        self,
        issue: str,
        query: str = "",
        *,
        interval: Interval | None = None,
        start: int | None = None,
        end: int | None = None,
    ) -> Series:
        """Events and users of an issue by interval, without gaps."""
        return await count_calls.issue_stats(self._session, issue, query, interval, start, end)

    async def project_stats(
        self,
        project: int,
        query: str = "",
        *,
        interval: Interval | None = None,
        start: int | None = None,
        end: int | None = None,
    ) -> Series:
        """Events and users of a project by interval, without gaps."""
        return await count_calls.project_stats(self._session, project, query, interval, start, end)

    async def releases(self, project: int, *, limit: int = 50, cursor: str | None = None) -> Releases:
        """A page of a project's releases, the newest first."""
        return await count_calls.releases(self._session, project, limit, cursor)

    async def rules_skipped(self, project: int) -> list[RuleSkipped]:
        """The grouping rules that were skipped on events of the last 14 days."""
        return await count_calls.rules_skipped(self._session, project)

    async def outcomes(
        self,
        project: int,
        *,
        start: int | None = None,
        end: int | None = None,
        interval: Interval | None = None,
    ) -> OutcomeSeries:
        """What became of events and requests, by outcome, SDK and reason."""
        return await count_calls.outcomes(self._session, project, start, end, interval)
