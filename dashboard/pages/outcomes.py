"""What became of everything that was sent to a project."""

import asyncio
from collections.abc import Sequence
from typing import Final

from aiohttp import web
from msgspec import Struct

from dashboard.api.operation import find_project
from dashboard.dependencies import state_of
from dashboard.pages.render import page
from dashboard.pages.time_ranges import LENGTHS, PageRange, read_span
from dashboard.view.series import outcomes_chart
from schemas.times import iso
from storage.reader.answers import Interval, OutcomeCount
from storage.reader.count_calls import CountOutcomes

ORDER: Final = {
    "accepted": "Accepted",
    "duplicate": "Repeated",
    "invalid": "Invalid",
    "tooLarge": "Too large",
    "rateLimited": "Rate limited",
    "deadLettered": "Set aside",
}
_UNITS: Final[dict[Interval, int]] = {"minute": 60_000, "hour": 3_600_000, "day": 86_400_000}


class SdkRow(Struct, frozen=True):
    """Counts of one SDK, in the order of `ORDER`."""

    sdk: str
    counts: list[int]


class ReasonRow(Struct, frozen=True):
    """A reason and how often it was given."""

    outcome: str
    reason: str
    sdk: str
    count: int


async def show(request: web.Request) -> web.Response:
    """Counts of the range: over time, by SDK, and the reasons of what was refused."""
    state = state_of(request)
    project = find_project(state, request.match_info["project"])
    now_ms, reader = state.parts.now_ms(), state.parts.reader
    span = read_span(dict(request.query), now_ms)
    interval = _interval(span, now_ms)
    whole, timed = await asyncio.gather(
        reader.read(CountOutcomes(project.number, start=span.start, end=span.end)),
        reader.read(CountOutcomes(project.number, start=span.start, end=span.end, interval=interval)),
    )
    times = _times(span, now_ms, _UNITS[interval])
    return page(
        request,
        "outcomes.html",
        project=project,
        active="outcomes",
        span=span,
        lengths=LENGTHS,
        words=ORDER,
        totals=_counts(whole.outcomes),
        rows=_by_sdk(whole.outcomes),
        reasons=_reasons(whole.outcomes),
        figure=outcomes_chart(timed.outcomes, times, interval),
    )


def _interval(span: PageRange, now_ms: int) -> Interval:
    length = (now_ms if span.end is None else span.end) - span.start
    if length <= 2 * _UNITS["hour"]:
        return "minute"
    return "hour" if length <= 3 * _UNITS["day"] else "day"


def _times(span: PageRange, now_ms: int, unit: int) -> list[str]:
    end = now_ms + 1 if span.end is None else span.end
    return [iso(at) for at in range(span.start - span.start % unit, end, unit)][-400:]


def _counts(outcomes: Sequence[OutcomeCount]) -> list[int]:
    return [sum(one.count for one in outcomes if one.outcome == name) for name in ORDER]


def _by_sdk(outcomes: Sequence[OutcomeCount]) -> list[SdkRow]:
    names = {one.sdk for one in outcomes}
    rows = [SdkRow(name, _counts([one for one in outcomes if one.sdk == name])) for name in names]
    return sorted(rows, key=lambda row: (-sum(row.counts), row.sdk))


def _reasons(outcomes: Sequence[OutcomeCount]) -> list[ReasonRow]:
    rows = [
        ReasonRow(ORDER.get(one.outcome, one.outcome), one.reason, one.sdk, one.count)
        for one in outcomes
        if one.outcome not in {"accepted", "duplicate"}
    ]
    return sorted(rows, key=lambda row: -row.count)[:50]
