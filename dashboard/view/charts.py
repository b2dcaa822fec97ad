"""Charts as inline SVG, styled by classes: the content security policy forbids inline styles."""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final, get_args

from markupsafe import Markup
from msgspec import Struct
from msgspec.structs import replace

from dashboard.view.text import flat, plural
from schemas.issues import Refusal
from schemas.read_api import Interval, OutcomeCount, Series
from schemas.times import from_ms, parse_iso

SPARK_WIDTH: Final = 120
SPARK_HEIGHT: Final = 28
CHART_WIDTH: Final = 720
CHART_HEIGHT: Final = 120
REFUSED: Final = (*get_args(Refusal), "deadLettered")
MAX_OF_KIND: Final = 5
"""Marks of a kind, so that a chart stays calm: of more, the newest."""
_FORMATS: Final[dict[str, str]] = {"minute": "%b %-d, %H:%M", "hour": "%b %-d, %H:%M", "day": "%b %-d"}


class Mark(Struct, frozen=True):
    """Something that happened at a time (Unix ms), and its CSS class.

    Marks at the same bar with the same `what`, if it isn't empty, are one: `a, b first seen`.
    """

    at: int
    label: str
    kind: str
    what: str = ""

    @property
    def text(self) -> str:
        return f"{self.label} {self.what}".strip()


class Bar(Struct, frozen=True):
    """One bar of a chart: `label` is its tooltip; `segments` are stacked upwards, each with its CSS class."""

    label: str
    segments: tuple[tuple[str, int], ...]

    @property
    def total(self) -> int:
        return sum(value for _, value in self.segments)


def sparkline(values: Sequence[int], peak: int) -> Markup:
    """A row of bars without axes, as high as their share of `peak`, with a label for screen readers."""
    step = SPARK_WIDTH / max(1, len(values))
    bars = Markup().join(
        _rect(
            "bar" if value else "none",
            i * step + 0.5,
            step - 1,
            _height(value, peak, SPARK_HEIGHT),
            SPARK_HEIGHT,
        )
        for i, value in enumerate(values)
    )
    return Markup(
        '<svg class="spark" viewBox="0 0 {} {}" role="img" aria-label="{}" preserveAspectRatio="none">{}</svg>'
    ).format(SPARK_WIDTH, SPARK_HEIGHT, f"Trend: {', '.join(str(v) for v in values)}", bars)


def chart(bars: Sequence[Bar], description: str, lines: Sequence[tuple[int, Mark]] = ()) -> Markup:
    """Bars over time with grid lines; `description` is the chart in a sentence for screen readers.

    `lines` are marks at the bar of a number.
    """
    peak = max((bar.total for bar in bars), default=0) or 1
    step = CHART_WIDTH / max(1, len(bars))
    gap = min(14.0, step * 0.3)
    shapes = Markup().join(_bar(bar, i * step + gap / 2, step - gap, peak) for i, bar in enumerate(bars))
    shapes += Markup().join(
        Markup('<line class="mark {}" x1="{x}" x2="{x}" y1="0" y2="{}"><title>{}</title></line>').format(
            mark.kind, CHART_HEIGHT, flat(mark.text, 300), x=f"{(number + 0.5) * step:.1f}"
        )
        for number, mark in lines
    )
    return Markup(
        '<svg class="chart" viewBox="0 0 {w} {h}" role="img" aria-label="{description}" preserveAspectRatio="none">'
        '<line class="grid" x1="0" x2="{w}" y1="0.5" y2="0.5"/>'
        '<line class="grid" x1="0" x2="{w}" y1="{mid}" y2="{mid}"/>'
        '{shapes}<line class="base" x1="0" x2="{w}" y1="{low}" y2="{low}"/></svg>'
    ).format(
        w=CHART_WIDTH,
        h=CHART_HEIGHT,
        mid=CHART_HEIGHT / 2,
        low=CHART_HEIGHT - 0.5,
        description=description,
        shapes=shapes,
    )


def share(value: int, whole: int) -> Markup:
    """A horizontal bar filled in proportion to `value`."""
    width = 0.0 if not whole else max(1.0, min(100.0, 100 * value / whole))
    return Markup(
        '<svg class="share" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="track" width="100" height="4" rx="2"/><rect class="bar" width="{}" height="4" rx="2"/></svg>'
    ).format(f"{width:.1f}")


def percent(value: int, whole: int) -> str:
    """A share as text."""
    if not whole:
        return "0 %"
    share = 100 * value / whole
    return "<1 %" if 0 < share < 1 else f"{share:.0f} %"


def _bar(bar: Bar, x: float, width: float, peak: int) -> Markup:
    shapes, low = [], float(CHART_HEIGHT)
    for kind, value in bar.segments:
        height = _height(value, peak, CHART_HEIGHT - 4)
        if height:
            shapes.append(_rect(kind, x, width, height, low))
            low -= height
    # A transparent column of full height shows the tooltip above low bars too.
    return Markup(
        '<g class="column"><title>{}</title><rect class="hover" x="{}" width="{}" height="{}"/>{}</g>'
    ).format(bar.label, f"{x:.1f}", f"{width:.1f}", CHART_HEIGHT, Markup().join(shapes))


def _height(value: int, peak: int, whole: float) -> float:
    return max(1.5, value / peak * whole) if value else 0.0


def _rect(kind: str, x: float, width: float, height: float, low: float) -> Markup:
    visible = height or 1.0
    return Markup('<rect class="{}" x="{}" y="{}" width="{}" height="{}"/>').format(
        kind, f"{x:.1f}", f"{low - visible:.1f}", f"{max(0.5, width):.1f}", f"{visible:.1f}"
    )


def _sentence(values: Sequence[int], times: Sequence[str]) -> str:
    """A series in a sentence."""
    if not any(values):
        return "No events in this time range"
    highest = max(range(len(values)), key=lambda i: values[i])
    return f"{plural(sum(values), 'event')}, peak of {values[highest]:,} at {times[highest]}"


class Figure(Struct, frozen=True):
    """A chart, the labels under its ends, its highest value, and the texts of its marks."""

    drawing: Markup
    first: str
    last: str
    peak: int
    interval: str = ""
    marks: tuple[str, ...] = ()


def events_chart(series: Series, marks: Sequence[Mark] = ()) -> Figure:
    """Events over time, with the marks that are in its range."""
    labels = [_label(point.time, series.interval) for point in series.series]
    values = [point.events for point in series.series]
    bars = [
        Bar(
            f"{label}: {plural(point.events, 'event')}, {plural(point.users, 'user')}",
            (("bar", point.events),),
        )
        for label, point in zip(labels, series.series, strict=True)
    ]
    lines = _lines([point.time for point in series.series], marks)
    return replace(_figure(bars, labels, _sentence(values, labels), lines), interval=series.interval)


def outcomes_chart(
    counts: Sequence[OutcomeCount], times: Sequence[str], interval: Interval, marks: Sequence[Mark] = ()
) -> Figure:
    """Accepted, duplicate and refused events over time, stacked, with the marks that are in its range."""
    sums: dict[tuple[str, str], int] = {}
    for row in counts:
        kind = "refused" if row.outcome in REFUSED else row.outcome
        if row.time is not None:
            sums[row.time, kind] = sums.get((row.time, kind), 0) + row.count
    labels = [_label(time, interval) for time in times]
    bars = []
    for time, label in zip(times, labels, strict=True):
        segments = tuple((kind, sums.get((time, kind), 0)) for kind in ("accepted", "duplicate", "refused"))
        summary = ", ".join(f"{count:,} {kind}" for kind, count in segments if count) or "nothing"
        bars.append(Bar(f"{label}: {summary}", segments))
    refused = sum(count for (_, kind), count in sums.items() if kind == "refused")
    accepted = sum(count for (_, kind), count in sums.items() if kind == "accepted")
    return _figure(bars, labels, f"{accepted:,} accepted, {refused:,} refused", _lines(times, marks))


def _lines(times: Sequence[str], marks: Sequence[Mark]) -> list[tuple[int, Mark]]:
    """The newest marks of each kind within the range of the bars, with the numbers of their bars.

    The bars begin at `times`. The marks are ordered from the oldest to the newest.
    """
    starts = [parse_iso(time) for time in times]
    # The last interval is as long as that before it.
    end = 2 * starts[-1] - starts[-2] if len(starts) > 1 else 0
    shown: dict[str, list[Mark]] = {}
    for mark in sorted(marks, key=lambda mark: -mark.at):
        if starts[:1] <= [mark.at] < [end]:
            shown.setdefault(mark.kind, []).append(mark)
    newest = [mark for some in shown.values() for mark in some[:MAX_OF_KIND]]
    lines: list[tuple[int, Mark]] = []
    for mark in sorted(newest, key=lambda mark: mark.at):
        number = bisect_right(starts, mark.at) - 1
        before = lines[-1] if lines else None
        if before is not None and mark.what and (before[0], before[1].what) == (number, mark.what):
            lines[-1] = number, replace(before[1], label=f"{before[1].label}, {mark.label}")
        else:
            lines.append((number, mark))
    return lines


def _figure(
    bars: list[Bar], labels: list[str], description: str, lines: Sequence[tuple[int, Mark]] = ()
) -> Figure:
    peak = max((bar.total for bar in bars), default=0)
    first, last = (labels[0], labels[-1]) if labels else ("", "")
    marks = tuple(f"{labels[number]}: {mark.text}" for number, mark in lines)
    return Figure(chart(bars, description, lines), first, last, peak, marks=marks)


def _label(time: str, interval: str) -> str:
    return from_ms(parse_iso(time)).strftime(_FORMATS[interval])
