"""Times for people: how long ago, with the exact time at hand."""

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
    """A length of time in its largest unit: `3 h`."""
    seconds = abs(milliseconds) // 1000
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return "now"


def exact(moment: str | int) -> str:
    """`2026-11-21 10:52:07 UTC`."""
    return from_ms(_ms(moment)).strftime("%Y-%m-%d %H:%M:%S UTC")


def ago(moment: str | int, now_ms: int) -> Markup:
    """`3 h ago` as a `<time>` that carries the exact one."""
    ms = _ms(moment)
    words = distance(now_ms - ms)
    if words != "now":
        words = f"{words} ago" if ms <= now_ms else f"in {words}"
    return Markup('<time datetime="{}" title="{}">{}</time>').format(iso(ms), exact(ms), words)


def age(moment: str | int, now_ms: int) -> Markup:
    """As `ago`, without the word, for narrow columns."""
    ms = _ms(moment)
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        iso(ms), exact(ms), distance(now_ms - ms)
    )


def _ms(moment: str | int) -> int:
    return moment if isinstance(moment, int) else parse_iso(moment)
