"""Times for people: relative, with the exact time as tooltip."""

from typing import Final

from markupsafe import Markup

from schemas.times import from_ms, iso, parse_iso

_UNITS: Final = (
    (365 * 86_400, "y"),
    (30 * 86_400, "mo"),
    (7 * 86_400, "wk"),
    (86_400, "d"),
    (3_600, "h"),
    (60, "min"),
    (1, "s"),
)


def distance(milliseconds: int) -> str:
    """A duration in its largest unit: `3 h`."""
    seconds = abs(milliseconds) // 1000
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return "now"


def exact(moment: str | int) -> str:
    """`2026-11-21 10:52:07 UTC`."""
    return from_ms(_ms(moment)).strftime("%Y-%m-%d %H:%M:%S UTC")


def ago(moment: str | int, now_ms: int) -> Markup:
    """`3 h ago` as a `<time>` element with the exact time."""
    ms = _ms(moment)
    relative = distance(now_ms - ms)
    if relative != "now":
        relative = f"{relative} ago" if ms <= now_ms else f"in {relative}"
    return Markup('<time datetime="{}" title="{}">{}</time>').format(iso(ms), exact(ms), relative)


def _ms(moment: str | int) -> int:
    return moment if isinstance(moment, int) else parse_iso(moment)
