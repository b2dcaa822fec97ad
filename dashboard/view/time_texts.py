"""Times for people: relative, with the exact time as tooltip."""

from collections.abc import Mapping
from typing import Final

from markupsafe import Markup

from dashboard.view.text import plural
from schemas.issues import ESCALATING_MS, NEW_MS
from schemas.times import from_ms, iso, parse_iso

_UNITS: Final = (
    (365 * 86_400, "y"),
    (60 * 86_400, "mo"),
    (14 * 86_400, "wk"),
    (86_400, "d"),
    (3_600, "h"),
    (60, "min"),
    (1, "s"),
)


_SIZES: Final = {"mo": 30 * 86_400, "wk": 7 * 86_400}
"""Units that are used from two of them on: "8 d" says more than "1 wk"."""


def distance(milliseconds: int) -> str:
    """A duration in its largest unit: `3 h`."""
    seconds = abs(milliseconds) // 1000
    for least, unit in _UNITS:
        if seconds >= least:
            return f"{seconds // _SIZES.get(unit, least)} {unit}"
    return "now"


def exact(moment: str | int) -> str:
    """`2026-11-21 10:52:07 UTC`."""
    return from_ms(_ms(moment)).strftime("%Y-%m-%d %H:%M:%S UTC")


def at(moment: str | int) -> Markup:
    """The exact time as a `<time>` element, which a script shows in the reader's zone."""
    text = exact(moment)
    return Markup('<time datetime="{}" title="{}" data-exact>{}</time>').format(iso(_ms(moment)), text, text)


def snooze(until: Mapping[str, object] | None) -> str:
    """The condition that ends a snooze; empty without one."""
    match dict(until or {}):
        case {"time": str(time)}:
            return f"until {exact(time)}"
        case {"events": int(count)}:
            return f"until {plural(count, 'more event')}"
        case {"users": int(count)}:
            return f"until {plural(count, 'more user')}"
        case {"escalating": True}:
            return "until it escalates"
    return ""


def is_new(first_seen: str, now_ms: int) -> bool:
    """Whether an issue that was first seen then is new, as `is:new` has it."""
    return now_ms - parse_iso(first_seen) < NEW_MS


def is_escalating(escalated_at: str | None, now_ms: int) -> bool:
    """Whether an issue that escalated then still is escalating, as `is:escalating` has it."""
    return escalated_at is not None and now_ms - parse_iso(escalated_at) < ESCALATING_MS


def ago(moment: str | int, now_ms: int) -> Markup:
    """`3 h ago` as a `<time>` element with the exact time."""
    ms = _ms(moment)
    relative = distance(now_ms - ms)
    if relative != "now":
        relative = f"{relative} ago" if ms <= now_ms else f"in {relative}"
    return Markup('<time datetime="{}" title="{}">{}</time>').format(iso(ms), exact(ms), relative)


def _ms(moment: str | int) -> int:
    return moment if isinstance(moment, int) else parse_iso(moment)
