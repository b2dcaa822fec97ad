"""Rows of `events` and `payloads`, and the events that the read API returns for them.

It defines the columns, ids and conditions of the rows.
"""

import logging
import uuid
from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Raw, Struct

from schemas.ids import hex64, issue_id
from schemas.read_api import EventRow
from schemas.times import iso
from storage.errors import NotFound
from storage.read.query.question import Statement

log = logging.getLogger(__name__)

EVENT_COLUMNS: Final = (
    "project_id, fingerprint, toUnixTimestamp64Milli(ts), id, toUnixTimestamp64Milli(received), error_type, message,"
    " release, environment, platform, kind, os, os_version, model, locale, sdk, user_id, tags"
)
ATTRIBUTES: Final = "fingerprint, toUnixTimestamp64Milli(received), sdk, grouping_version, grouping_rule"
HEADER: Final = f"id, toUnixTimestamp64Milli(ts), {ATTRIBUTES}"


class StoredEvent(Struct, frozen=True):
    """A row with the columns `EVENT_COLUMNS`, in their order; times are Unix ms."""

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


class EventHeader(Struct, frozen=True):
    """An event's position and the values that its payload lacks.

    The fields are the columns `HEADER`, in their order; times are Unix ms.
    """

    id: int
    time: int
    fingerprint: int = 0
    received: int = 0
    sdk: str = ""
    grouping_version: str = ""
    grouping_rule: str = ""


def event_number(text: str) -> int:
    """The number of an event id. Raises NotFound if the text is not a uuid."""
    try:
        return uuid.UUID(text).int
    except ValueError:
        raise NotFound("there is no such event") from None


def event_text(number: int) -> str:
    """The event id as it was sent."""
    return str(uuid.UUID(int=number))


def before_or_after(statement: Statement, sign: str, time: int, event: int) -> str:
    """The condition that an event is before (`<`) or after (`>`) another, by time and id."""
    moment = statement.parameters.moment(time)
    number = statement.parameters.add(event, "UInt128")
    return f"ts {sign}= {moment} AND (ts {sign} {moment} OR id {sign} {number})"


def issue_of(project: int, fingerprint: int, issues: Mapping[int, int]) -> int:
    """The issue of a fingerprint: the known one, else the issue that the fingerprint opens."""
    return issues.get(fingerprint) or issue_id(project, fingerprint)


def readable(event: int, payload: bytes) -> Raw | None:
    """The event as it was sent; None, with a warning in the log, if the payload is damaged."""
    try:
        # Validates the JSON without building objects: an invalid payload would break the response that contains it.
        msgspec.json.decode(payload, type=Raw)
    except msgspec.DecodeError as error:
        log.warning(
            "can't read the payload of event %s: %s",
            event_text(event),
            error,
            extra={"event": "payload_unreadable"},
        )
        return None
    return Raw(payload)


def to_event_row(event: StoredEvent, issues: Mapping[int, int]) -> EventRow:
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
