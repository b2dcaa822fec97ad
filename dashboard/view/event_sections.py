"""An event as its page shows it, in sections."""

from typing import Any, Final

from msgspec import Struct

from dashboard.view.breadcrumb_lines import BreadcrumbLine, timeline
from dashboard.view.raw_event import json_of, mapping_of, text_of
from dashboard.view.stack_view import ErrorView, chain
from dashboard.view.time_texts import exact
from schemas.times import parse_iso

KNOWN_FIELDS: Final = frozenset(
    {
        "id", "timestamp", "kind", "platform", "release", "environment", "device", "app", "user", "tags",
        "breadcrumbs", "error", "fingerprint", "traceId", "spanId",
    }
)  # fmt: skip


class EventSections(Struct, frozen=True):
    """Sections of the page; facts are (label, value) pairs, without missing values."""

    id: str
    timestamp: str
    release: str
    errors: list[ErrorView]
    crumbs: list[BreadcrumbLine]
    tags: list[tuple[str, str]]
    about: list[tuple[str, str]]
    user: list[tuple[str, str]]
    device: list[tuple[str, str]]
    app: list[tuple[str, str]]
    fingerprint: str
    others: str


def read(event: dict[str, Any], sdk: str, time: str = "") -> EventSections:
    """The sections of an event; `time` is its effective time (contract, section 2, point 10)."""
    device, app, user = (mapping_of(event.get(key)) for key in ("device", "app", "user"))
    framework = mapping_of(app.get("framework"))
    system = " ".join(filter(None, (text_of(device.get("os")), text_of(device.get("osVersion")))))
    others = {key: value for key, value in event.items() if key not in KNOWN_FIELDS}
    return EventSections(
        id=text_of(event.get("id")),
        timestamp=text_of(event.get("timestamp")),
        release=text_of(event.get("release")),
        errors=chain(event.get("error")),
        crumbs=timeline(event),
        tags=[(key, text_of(value)) for key, value in sorted(mapping_of(event.get("tags")).items())],
        about=_facts(
            ("Device clock", _clock(event.get("timestamp"), time)),
            ("Release", event.get("release")),
            ("Environment", event.get("environment")),
            ("Platform", event.get("platform")),
            ("Kind", event.get("kind")),
            ("SDK", sdk),
            ("Trace", event.get("traceId")),
            ("Span", event.get("spanId")),
        ),
        user=_user(user),
        device=_facts(("System", system), ("Model", device.get("model")), ("Locale", device.get("locale"))),
        app=_facts(
            ("Version", app.get("version")),
            ("Build", app.get("build")),
            (
                "Framework",
                " ".join(filter(None, map(text_of, (framework.get("name"), framework.get("version"))))),
            ),
        ),
        fingerprint=json_of(event["fingerprint"]) if event.get("fingerprint") else "",
        others=json_of(others, indent=2) if others else "",
    )


def _clock(timestamp: Any, time: str) -> str:
    """The device's timestamp if it was implausible and replaced as the event's time; else empty."""
    try:
        return "" if parse_iso(timestamp) == parse_iso(time) else exact(timestamp)
    except (TypeError, ValueError, OverflowError):
        return text_of(timestamp) if time else ""


def _user(user: dict[str, Any]) -> list[tuple[str, str]]:
    anonymous = user.get("anonymous")
    hashes = mapping_of(user.get("linkHashes"))
    return _facts(
        ("Id", user.get("id")),
        ("Name", user.get("name")),
        ("Anonymous", {True: "yes", False: "no"}.get(anonymous, "") if isinstance(anonymous, bool) else ""),
        *((f"Hash of {key}", value) for key, value in sorted(hashes.items())),
    )


def _facts(*pairs: tuple[str, Any]) -> list[tuple[str, str]]:
    return [(label, text_of(value)) for label, value in pairs if text_of(value)]
