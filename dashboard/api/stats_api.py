"""Counts over time: events, releases, and the outcomes of everything that was sent."""

from typing import Annotated

from msgspec import Meta, Struct

from dashboard.api.operation import Call, NoInput, Operation
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


async def _of_project(call: Call[StatsQuery, NoInput]) -> Series:
    query = call.query
    return await call.read_with_warnings(
        GetProjectStats(call.project().number, query.query, interval=query.interval, **query.bounds())
    )


async def _of_issue(call: Call[StatsQuery, NoInput]) -> Series:
    query = call.query
    return await call.read_with_warnings(
        GetIssueStats(call.issue(), query.query, interval=query.interval, **query.bounds())
    )


async def _releases(call: Call[PageQuery, NoInput]) -> Releases:
    return await call.reader.read(
        ListReleases(call.project().number, limit=call.query.limit, cursor=call.query.cursor)
    )


async def _compared(call: Call[ComparisonQuery, NoInput]) -> ReleaseComparison:
    query = call.query
    return await call.reader.read(CompareReleases(call.project().number, query.before, query.after))


async def _outcomes(call: Call[OutcomesQuery, NoInput]) -> OutcomeSeries:
    return await call.reader.read(
        CountOutcomes(call.project().number, **call.query.bounds(), interval=call.query.interval)
    )


OPERATIONS = (
    Operation(
        "GET", "/projects/{project}/stats", "A project's events and users over time", _of_project, Role.VIEWER
    ),
    Operation(
        "GET", "/issues/{issue}/stats", "An issue's events and users over time", _of_issue, Role.VIEWER
    ),
    Operation(
        "GET",
        "/projects/{project}/releases:compare",
        "Issues of two releases: new, gone, worse or better by their share of the events",
        _compared,
        Role.VIEWER,
    ),
    Operation(
        "GET",
        "/projects/{project}/releases",
        "Releases with their events, new issues and regressions",
        _releases,
        Role.VIEWER,
    ),
    Operation(
        "GET",
        "/projects/{project}/outcomes",
        "Counts of everything that was sent, by outcome, SDK and reason",
        _outcomes,
        Role.VIEWER,
    ),
)
