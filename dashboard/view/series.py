"""A series of counts as a chart with its axis."""

from collections.abc import Sequence

from markupsafe import Markup
from msgspec import Struct

from dashboard.view.charts import Bar, chart, sentence
from dashboard.view.text import plural
from schemas.times import from_ms, parse_iso
from storage.reader.answers import Interval, OutcomeCount, Series

_FORMATS: dict[str, str] = {"minute": "%b %-d, %H:%M", "hour": "%b %-d, %H:%M", "day": "%b %-d"}
REFUSED = ("invalid", "tooLarge", "rateLimited", "deadLettered")


class Figure(Struct, frozen=True):
    """A drawn chart, what stands under its ends, and its highest bar."""

    drawing: Markup
    first: str
    last: str
    most: int


def events_chart(series: Series) -> Figure:
    """Events over time."""
    labels = [_label(point.time, series.interval) for point in series.series]
    values = [point.events for point in series.series]
    bars = [
        Bar(
            f"{label}: {plural(point.events, 'event')}, {plural(point.users, 'user')}",
            (("bar", point.events),),
        )
        for label, point in zip(labels, series.series, strict=True)
    ]
    return _figure(bars, labels, sentence(values, labels))


def outcomes_chart(counts: Sequence[OutcomeCount], times: Sequence[str], interval: Interval) -> Figure:
    """Accepted, repeated and refused events over time, stacked."""
    sums: dict[tuple[str, str], int] = {}
    for one in counts:
        kind = "refused" if one.outcome in REFUSED else one.outcome
        if one.time is not None:
            sums[one.time, kind] = sums.get((one.time, kind), 0) + one.count
    labels = [_label(time, interval) for time in times]
    kinds = ("accepted", "duplicate", "refused")
    bars = []
    for time, label in zip(times, labels, strict=True):
        parts = tuple((kind, sums.get((time, kind), 0)) for kind in kinds)
        words = ", ".join(f"{count:,} {kind}" for kind, count in parts if count) or "nothing"
        bars.append(Bar(f"{label}: {words}", parts))
    refused = sum(count for (_, kind), count in sums.items() if kind == "refused")
    accepted = sum(count for (_, kind), count in sums.items() if kind == "accepted")
    return _figure(bars, labels, f"{accepted:,} accepted, {refused:,} refused")


def _figure(bars: list[Bar], labels: list[str], words: str) -> Figure:
    most = max((bar.total for bar in bars), default=0)
    first, last = (labels[0], labels[-1]) if labels else ("", "")
    return Figure(chart(bars, words), first, last, most)


def _label(time: str, interval: str) -> str:
    return from_ms(parse_iso(time)).strftime(_FORMATS[interval])
