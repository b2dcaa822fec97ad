"""Outcomes of everything that was sent to a project."""

import asyncio
from collections.abc import Sequence

from aiohttp import web
from msgspec import Struct

from dashboard.dependencies import state_of
from dashboard.pages.render import page
from dashboard.requested_project import project_of
from dashboard.time_ranges import DURATIONS, PageRange, read_page_range
from dashboard.view.charts import outcomes_chart
from dashboard.view.release_marks import release_marks
from schemas.issues import OUTCOME_LABELS
from schemas.read_api import Interval, OutcomeCount, OutcomeExample
from schemas.times import iso
from storage.read.counts.count_calls import CountOutcomes, ListRevokedTokens
from storage.read.query.ranges import UNIT_MS


class SdkRow(Struct, frozen=True):
    """Counts of one SDK, in the order of `OUTCOME_LABELS`."""

    sdk: str
    counts: list[int]


class ReasonRow(Struct, frozen=True):
    """A reason, its count, and a response that a sender of such an event got."""

    outcome: str
    reason: str
    sdk: str
    count: int
    example: OutcomeExample | None


async def show_outcomes(request: web.Request) -> web.Response:
    """Show the outcomes of a project's events.

    They are counts over time and by SDK, the reasons for refusals, and revoked tokens in use.
    """
    state, project = state_of(request), project_of(request)
    dependencies = state.dependencies
    now_ms, reader = dependencies.now_ms(), dependencies.reader
    time_range = read_page_range(dict(request.query), now_ms)
    interval = _interval(time_range, now_ms)
    whole, timed, revoked, releases = await asyncio.gather(
        reader.read(CountOutcomes(project.number, **time_range.bounds)),
        reader.read(CountOutcomes(project.number, **time_range.bounds, interval=interval)),
        reader.read(ListRevokedTokens(project.number, **time_range.bounds)),
        state.releases.of(reader, project.number),
    )
    times = _times(time_range, now_ms, UNIT_MS[interval])
    return page(
        request,
        "outcomes.html",
        project=project,
        active="outcomes",
        time_range=time_range,
        durations=DURATIONS,
        labels=OUTCOME_LABELS,
        totals=_counts(whole.outcomes),
        rows=_by_sdk(whole.outcomes),
        reasons=_reasons(whole.outcomes),
        revoked_tokens=revoked,
        figure=outcomes_chart(timed.outcomes, times, interval, release_marks(releases)),
    )


def _interval(time_range: PageRange, now_ms: int) -> Interval:
    length = (now_ms if time_range.end is None else time_range.end) - time_range.start
    if length <= 2 * UNIT_MS["hour"]:
        return "minute"
    return "hour" if length <= 3 * UNIT_MS["day"] else "day"


def _times(time_range: PageRange, now_ms: int, unit: int) -> list[str]:
    end = now_ms + 1 if time_range.end is None else time_range.end
    return [iso(at) for at in range(time_range.start - time_range.start % unit, end, unit)][-400:]


def _counts(outcomes: Sequence[OutcomeCount]) -> list[int]:
    return [sum(row.count for row in outcomes if row.outcome == name) for name in OUTCOME_LABELS]


def _by_sdk(outcomes: Sequence[OutcomeCount]) -> list[SdkRow]:
    sdks = {row.sdk for row in outcomes}
    rows = [SdkRow(sdk, _counts([row for row in outcomes if row.sdk == sdk])) for sdk in sdks]
    return sorted(rows, key=lambda row: (-sum(row.counts), row.sdk))


def _reasons(outcomes: Sequence[OutcomeCount]) -> list[ReasonRow]:
    rows = [
        ReasonRow(OUTCOME_LABELS.get(row.outcome, row.outcome), row.reason, row.sdk, row.count, row.example)
        for row in outcomes
        if row.outcome not in {"accepted", "duplicate"}
    ]
    return sorted(rows, key=lambda row: -row.count)[:50]
