"""Rows of `events` as lists show them."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from schemas.ids import hex64, issue_id
from schemas.times import iso
from storage.reader.answers import EventRow
from storage.reader.identifiers import event_text

_COLUMNS: Final = (
    "project_id",
    "fingerprint",
    "toUnixTimestamp64Milli(ts)",
    "id",
    "toUnixTimestamp64Milli(received)",
    "error_type",
    "message",
    "release",
    "environment",
    "platform",
    "kind",
    "os",
    "os_version",
    "model",
    "locale",
    "sdk",
    "user_id",
    "tags",
)
COLUMNS: Final = ", ".join(_COLUMNS)

BEYOND: Final = "fingerprint, toUnixTimestamp64Milli(received), sdk, grouping_version, grouping_rule"
PLACED: Final = f"id, toUnixTimestamp64Milli(ts), {BEYOND}"


class StoredEvent(Struct, frozen=True):
    """One row, its columns in the order of `COLUMNS`; times are Unix ms."""

    project_id: int
    fingerprint: int
    time: int
    id: int
    received: int
    error_type: str
    message: str
    release: str
    environment: str
    platform: str
    kind: str
    os: str
    os_version: str
    model: str
    locale: str
    sdk: str
    user_id: str
    tags: dict[str, str]


class ErrorLocation(Struct, frozen=True):
    """Where an event stands, and what its payload doesn't tell; columns in the order of `PLACED`, times are Unix ms."""

    id: int
    time: int
    fingerprint: int = 0
    received: int = 0
    sdk: str = ""
    grouping_version: str = ""
    grouping_rule: str = ""


def read_event(columns: Sequence[Any]) -> StoredEvent:
    """A row of an answer that selected `COLUMNS`."""
    return StoredEvent(*columns)


def read_placed(columns: Sequence[Any]) -> ErrorLocation:
    """A row of an answer that selected `PLACED`."""
    return ErrorLocation(*columns)


def issue_of(project: int, fingerprint: int, issues: Mapping[int, int]) -> int:
    """The issue of a fingerprint by a map of those that are known; until then, the one that it opens."""
    return issues.get(fingerprint) or issue_id(project, fingerprint)


def answer(event: StoredEvent, issues: Mapping[int, int]) -> EventRow:
    """The event as the read API lists it."""
    return EventRow(
        id=event_text(event.id),
        issue_id=hex64(issue_of(event.project_id, event.fingerprint, issues)),
        time=iso(event.time),
        received_at=iso(event.received),
        error_type=event.error_type,
        message=event.message,
        release=event.release,
        environment=event.environment,
        platform=event.platform,
        kind=event.kind,
        os=event.os,
        os_version=event.os_version,
        model=event.model,
        locale=event.locale,
        sdk=event.sdk,
        user=event.user_id,
        tags=dict(event.tags),
    )
