"""Counts over time: events, releases, and the outcomes of everything that was sent."""

from typing import Annotated

from msgspec import Meta, Struct

from dashboard.api.operation import Call, NoInput, operation
from dashboard.auth.access import Role
from dashboard.http.inputs import PageQuery, RangeQuery, TimeQuery
from schemas.changes import MAX_RELEASE
from schemas.read_api import Interval, OutcomeSeries, ReleaseComparison, Releases, Series
from storage.read.counts.count_calls import CountOutcomes, GetIssueStats, GetProjectStats, ListReleases
from storage.read.counts.release_comparison import CompareReleases

ReleaseName = Annotated[str, Meta(max_length=MAX_RELEASE, description="a release")]


class StatsQuery(RangeQuery, frozen=True):
    """The events, and the length of an interval; by default it fits the range."""

    interval: Interval | None = None


class OutcomesQuery(TimeQuery, frozen=True):
    """Without `interval` each outcome has one count for the whole range."""

    interval: Interval | None = None


class ComparisonQuery(Struct, frozen=True):
    """Two releases; by default the newest and the one before it."""

    before: ReleaseName = ""
    after: ReleaseName = ""


@operation("GET", "/projects/{project}/stats", Role.VIEWER)
async def _of_project(call: Call[StatsQuery, NoInput]) -> Series:
    """A project's events and users over time."""
    query = call.query
    return await call.read_with_warnings(
        GetProjectStats(call.project().number, query.query, interval=query.interval, **query.bounds())
    )


@operation("GET", "/issues/{issue}/stats", Role.VIEWER)
async def _of_issue(call: Call[StatsQuery, NoInput]) -> Series:
    """An issue's events and users over time."""
    query = call.query
    return await call.read_with_warnings(
        GetIssueStats(call.issue(), query.query, interval=query.interval, **query.bounds())
    )


@operation("GET", "/projects/{project}/releases", Role.VIEWER)
async def _releases(call: Call[PageQuery, NoInput]) -> Releases:
    """Releases with their events, new issues and regressions."""
    return await call.reader.read(
        ListReleases(call.project().number, limit=call.query.limit, cursor=call.query.cursor)
    )


@operation("GET", "/projects/{project}/releases:compare", Role.VIEWER)
async def _compared(call: Call[ComparisonQuery, NoInput]) -> ReleaseComparison:
    """Issues of two releases: new, gone, worse or better by their share of the events."""
    query = call.query
    return await call.reader.read(CompareReleases(call.project().number, query.before, query.after))


@operation("GET", "/projects/{project}/outcomes", Role.VIEWER)
async def _outcomes(call: Call[OutcomesQuery, NoInput]) -> OutcomeSeries:
    """Counts of everything that was sent, by outcome, SDK and reason."""
    return await call.reader.read(
        CountOutcomes(call.project().number, **call.query.bounds(), interval=call.query.interval)
    )


OPERATIONS = (_of_project, _of_issue, _compared, _releases, _outcomes)
