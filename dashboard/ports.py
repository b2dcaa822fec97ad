"""What the dashboard needs of the parts below: the projects, and the reader of ClickHouse."""

from collections.abc import Callable, Sequence
from typing import Protocol

from schemas.changes import Update
from schemas.health import Part
from schemas.projects import Project
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


class Projects(Protocol):
    """`control.project_store.ProjectStore`, or a fake."""

    @property
    def loaded(self) -> bool:
        """Whether the projects are known yet."""
        ...

    def answering(self) -> Part:
        """Whether Kafka answers, of which projects are read."""
        ...

    def all(self) -> list[Project]:
        """Every project, in the order of creation."""
        ...

    def get(self, number: int) -> Project | None:
        """A project by its id."""
        ...

    async def write(self, project: Project) -> Project:
        """Write a new record; returns once it was read back, or what the same request has made before. Raises ProjectsUnavailable."""
        ...

    async def edit(self, number: int, change: Callable[[Project], Project]) -> Project | None:
        """Change a record; None when there is none. Raises ProjectsUnavailable and what `change` raises."""
        ...


class ReadPort(Protocol):
    """What `storage.reader.reader.Reader` answers; its docstring says what each question means and raises."""

    async def ping(self) -> None:
        """Raises StorageUnavailable."""
        ...

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
        """Issues of a project."""
        ...

    async def issue(
        self, issue: str, query: str = "", *, start: int | None = None, end: int | None = None
    ) -> Issue:
        """One issue."""
        ...

    async def activity(self, issue: str, *, limit: int = 50, cursor: str | None = None) -> ActivityPage:
        """An issue's changes, newest first."""
        ...

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
        """Events of an issue, newest first."""
        ...

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
        """Events of a project, newest first."""
        ...

    async def issue_event(self, issue: str, event: str) -> EventDetail:
        """An event of an issue: a uuid, `latest` or `oldest`."""
        ...

    async def project_event(self, project: int, event: str) -> EventDetail:
        """An event of a project."""
        ...

    async def sample(
        self,
        project: int,
        query: str = "",
        *,
        start: int | None = None,
        end: int | None = None,
        limit: int = 500,
    ) -> list[Sample]:
        """The newest events of a project, whole."""
        ...

    async def issues_by_fingerprint(self, project: int, fingerprints: Sequence[str]) -> dict[str, str]:
        """The issues that fingerprints belong to, of those that belong to one."""
        ...

    async def issue_tags(
        self, issue: str, query: str = "", *, start: int | None = None, end: int | None = None
    ) -> TagFacets:
        """An issue's tags."""
        ...

    async def project_tags(
        self, project: int, query: str = "", *, start: int | None = None, end: int | None = None
    ) -> TagFacets:
        """A project's tags."""
        ...

    async def tag_values(self, project: int, key: str, prefix: str = "") -> TagValues:
        """Completion of a tag's value."""
        ...

    async def field_values(self, project: int, field: str, prefix: str = "") -> TagValues:
        """Completion of a field's value."""
        ...

    async def keys(self, project: int, prefix: str = "") -> Keys:
        """Completion of a key."""
        ...

    async def unknown_keys(self, project: int, keys: Sequence[str]) -> list[KeyWarning]:
        """Tags that no event of a project has."""
        ...

    async def issue_stats(
        self,
        issue: str,
        query: str = "",
        *,
        interval: Interval | None = None,
        start: int | None = None,
        end: int | None = None,
    ) -> Series:
        """An issue's events over time."""
        ...

    async def project_stats(
        self,
        project: int,
        query: str = "",
        *,
        interval: Interval | None = None,
        start: int | None = None,
        end: int | None = None,
    ) -> Series:
        """A project's events over time."""
        ...

    async def releases(self, project: int, *, limit: int = 50, cursor: str | None = None) -> Releases:
        """A page of a project's releases."""
        ...

    async def rules_skipped(self, project: int) -> list[RuleSkipped]:
        """The grouping rules that were skipped on events of the last 14 days."""
        ...

    async def outcomes(
        self,
        project: int,
        *,
        start: int | None = None,
        end: int | None = None,
        interval: Interval | None = None,
    ) -> OutcomeSeries:
        """What became of what was sent."""
        ...

    async def project_of(self, issue: str) -> int:
        """The project of an issue."""
        ...

    async def similar(self, issue: str, *, limit: int = 10) -> SimilarIssues:
        """Issues like an issue."""
        ...


class ChangePort(Protocol):
    """`control.issue_changes.IssueChanges`, or a fake; its module says what each does and raises."""

    async def update(self, issue: str, update: Update, *, by: str, key: str = "") -> Issue:
        """Change one issue."""
        ...

    async def update_many(
        self, project: int, issues: Sequence[str], update: Update, *, by: str, key: str = ""
    ) -> list[Issue]:
        """Change many alike."""
        ...

    async def comment(self, issue: str, text: str, *, by: str, key: str = "") -> None:
        """Say something."""
        ...

    async def merge(self, issue: str, issues: Sequence[str], *, by: str, key: str = "") -> Issue:
        """Make others a part of an issue."""
        ...

    async def unmerge(self, issue: str, fingerprints: Sequence[str], *, by: str, key: str = "") -> Issue:
        """Make parts issues of their own."""
        ...
