"""Small charts as inline SVG: shapes only by attributes, since the content policy allows no inline style."""

from collections.abc import Sequence
from typing import Final

from markupsafe import Markup
from msgspec import Struct

from dashboard.view.text import plural

SPARK_WIDTH: Final = 120
SPARK_HEIGHT: Final = 28
CHART_WIDTH: Final = 720
CHART_HEIGHT: Final = 120


class Bar(Struct, frozen=True):
    """One bar of a chart: its label is what a pointer shows; `parts` are stacked upwards, with their classes."""

    label: str
    parts: tuple[tuple[str, int], ...]

    @property
    def total(self) -> int:
        """Height of the whole bar."""
        return sum(value for _, value in self.parts)


def sparkline(values: Sequence[int]) -> Markup:
    """A row of bars without axes; its words are for those who don't see it."""
    most = max(values, default=0) or 1
    step = SPARK_WIDTH / max(1, len(values))
    bars = Markup().join(
        _rect(
            "bar" if value else "none",
            i * step + 0.5,
            step - 1,
            _height(value, most, SPARK_HEIGHT),
            SPARK_HEIGHT,
        )
        for i, value in enumerate(values)
    )
    return Markup(
        '<svg class="spark" viewBox="0 0 {} {}" role="img" aria-label="{}" preserveAspectRatio="none">{}</svg>'
    ).format(SPARK_WIDTH, SPARK_HEIGHT, f"Trend: {', '.join(str(v) for v in values)}", bars)


def chart(bars: Sequence[Bar], words: str) -> Markup:
    """Bars over time with a line at the top that says the highest; `words` is the chart in a sentence."""
    most = max((bar.total for bar in bars), default=0) or 1
    step = CHART_WIDTH / max(1, len(bars))
    gap = min(14.0, step * 0.3)
    shapes = Markup().join(_bar(bar, i * step + gap / 2, step - gap, most) for i, bar in enumerate(bars))
    return Markup(
        '<svg class="chart" viewBox="0 0 {w} {h}" role="img" aria-label="{words}" preserveAspectRatio="none">'
        '<line class="grid" x1="0" x2="{w}" y1="0.5" y2="0.5"/><line class="grid" x1="0" x2="{w}" y1="{mid}" y2="{mid}"/>'
        '{shapes}<line class="base" x1="0" x2="{w}" y1="{low}" y2="{low}"/></svg>'
    ).format(
        w=CHART_WIDTH,
        h=CHART_HEIGHT,
        mid=CHART_HEIGHT / 2,
        low=CHART_HEIGHT - 0.5,
        words=words,
        shapes=shapes,
    )


def share(value: int, whole: int) -> Markup:
    """A bar that fills its place by a share."""
    width = 0.0 if not whole else max(1.0, min(100.0, 100 * value / whole))
    return Markup(
        '<svg class="share" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="track" width="100" height="4" rx="2"/><rect class="bar" width="{}" height="4" rx="2"/></svg>'
    ).format(f"{width:.1f}")


def percent(value: int, whole: int) -> str:
    """A share in words."""
    if not whole:
        return "0 %"
    part = 100 * value / whole
    return "<1 %" if 0 < part < 1 else f"{part:.0f} %"


def _bar(bar: Bar, x: float, width: float, most: int) -> Markup:
    shapes, low = [], float(CHART_HEIGHT)
    for kind, value in bar.parts:
        height = _height(value, most, CHART_HEIGHT - 4)
        if height:
            shapes.append(_rect(kind, x, width, height, low))
            low -= height
    # A column as high as the chart takes the pointer also above a low bar.
    return Markup(
        '<g class="column"><title>{}</title><rect class="hover" x="{}" width="{}" height="{}"/>{}</g>'
    ).format(bar.label, f"{x:.1f}", f"{width:.1f}", CHART_HEIGHT, Markup().join(shapes))


def _height(value: int, most: int, whole: float) -> float:
    return max(1.5, value / most * whole) if value else 0.0


def _rect(kind: str, x: float, width: float, height: float, low: float) -> Markup:
    shown = height or 1.0
    return Markup('<rect class="{}" x="{}" y="{}" width="{}" height="{}"/>').format(
        kind, f"{x:.1f}", f"{low - shown:.1f}", f"{max(0.5, width):.1f}", f"{shown:.1f}"
    )


def sentence(values: Sequence[int], times: Sequence[str]) -> str:
    """A series in a sentence, for those who don't see its chart."""
    if not any(values):
        return "No events in this time"
    peak = max(range(len(values)), key=lambda i: values[i])
    return f"{plural(sum(values), 'event')}, most of them, {values[peak]:,}, at {times[peak]}"
