"""Breadcrumbs as a timeline, each formatted by its type (protocol, section 2.8)."""

from typing import Any, Final

from msgspec import Struct

from dashboard.view.raw_event import items_of, json_of, mapping_of, number_of, text_of
from dashboard.view.time_texts import distance
from schemas.times import parse_iso

TITLES: Final = {
    "nav": "Navigation",
    "net": "Network",
    "log": "Log",
    "user": "User",
    "custom": "Custom",
    "track": "Track",
}


class BreadcrumbLine(Struct, frozen=True):
    """A line: `tone` is `bad`, `warn` or empty; `before_ms` is the time before the event, None if unknown."""

    kind: str
    title: str
    text: str
    detail: str
    tone: str
    timestamp: str
    before_ms: int | None

    @property
    def when(self) -> str:
        """The time before or after the event, with a sign; the timestamp as sent if it is unknown."""
        if self.before_ms is None:
            return self.timestamp
        sign = "\u2212" if self.before_ms > 0 else "+" if self.before_ms < 0 else ""
        ms = abs(self.before_ms)
        if ms < 1_000:
            return f"{sign}{ms} ms"
        return f"{sign}{ms / 1000:.1f} s" if ms < 600_000 else f"{sign}{distance(ms)}"


def timeline(event: dict[str, Any]) -> list[BreadcrumbLine]:
    """The breadcrumbs as sent: oldest first."""
    at = _parse(event.get("timestamp"))
    return [_crumb(mapping_of(item), at) for item in items_of(event.get("breadcrumbs"))]


def _crumb(item: dict[str, Any], at: int | None) -> BreadcrumbLine:
    kind, data = text_of(item.get("type")), mapping_of(item.get("data"))
    text, detail, tone = _format(kind, data)
    moment = _parse(item.get("timestamp"))
    return BreadcrumbLine(
        kind=kind if kind in TITLES else "custom",
        title=TITLES.get(kind, kind or "Custom"),
        text=text,
        detail=detail,
        tone=tone,
        timestamp=text_of(item.get("timestamp")),
        before_ms=None if moment is None or at is None else at - moment,
    )


def _format(kind: str, data: dict[str, Any]) -> tuple[str, str, str]:
    match kind:
        case "nav":
            return f"{text_of(data.get('from')) or '?'} → {text_of(data.get('to')) or '?'}", "", ""
        case "net":
            return _network(data)
        case "log":
            level = text_of(data.get("level"))
            tone = {"error": "bad", "fatal": "bad", "warning": "warn", "warn": "warn"}.get(level.lower(), "")
            return text_of(data.get("message")), level, tone
        case "user":
            return " ".join(filter(None, (text_of(data.get("action")), text_of(data.get("target"))))), "", ""
    message = text_of(data.get("message") or data.get("name"))
    other = {key: value for key, value in data.items() if key not in {"message", "name"}} if message else data
    return message or json_of(other), json_of(other) if message and other else "", ""


def _network(data: dict[str, Any]) -> tuple[str, str, str]:
    status, duration = number_of(data.get("status")), data.get("durationMs")
    facts = [str(status) if status else "no response" if "status" in data else ""]
    if number_of(duration) or duration == 0:
        facts.append(f"{duration:,} ms")
    tone = "bad" if status >= 500 or (not status and "status" in data) else "warn" if status >= 400 else ""
    text = f"{text_of(data.get('method'))} {text_of(data.get('url'))}".strip()
    return text, " · ".join(filter(None, facts)), tone


def _parse(value: Any) -> int | None:
    try:
        return parse_iso(value) if isinstance(value, str) else None
    except ValueError:
        return None
