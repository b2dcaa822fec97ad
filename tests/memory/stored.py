"""Events and issues as the fake keeps them."""

import uuid
from typing import Any

import msgspec
from msgspec import Raw, Struct

from query.event_view import EventView, IssueView, from_event
from schemas.ids import hex64, issue_id
from schemas.times import iso
from storage.reader.answers import EventDetail, EventRow, GroupingOf, Issue


class StoredEvent(Struct, frozen=True, kw_only=True):
    """An event with its issue; times are Unix ms, `view` is what a query sees of it.

    `opened` is the issue that its fingerprint opened, which may be merged into `issue` since.
    """

    project: int
    issue: int
    opened: int
    fingerprint: int
    id: str
    kind: str
    culprit: str
    payload: bytes
    received_ms: int
    view: EventView
    grouping: GroupingOf
    order: tuple[int, str]

    @property
    def time(self) -> int:
        """The event's time."""
        return self.view.timestamp

    def row(self) -> EventRow:
        """As lists show it."""
        view = self.view
        return EventRow(
            id=self.id,
            issue_id=hex64(self.issue),
            time=iso(self.time),
            received_at=iso(self.received_ms),
            error_type=view.type,
            message=view.message,
            release=view.release,
            environment=view.environment,
            platform=view.platform,
            kind=self.kind,
            os=view.os,
            os_version=view.os_version,
            model=view.model,
            locale=view.locale,
            sdk=view.sdk,
            user=view.user,
            tags=view.tags,
        )

    def detail(self, before: "StoredEvent | None", after: "StoredEvent | None") -> EventDetail:
        """As its page shows it, between its neighbours."""
        return EventDetail(
            event=Raw(self.payload),
            event_id=self.id,
            project_id=str(self.project),
            issue_id=hex64(self.issue),
            fingerprint=hex64(self.fingerprint),
            time=iso(self.time),
            received_at=iso(self.received_ms),
            sdk=self.view.sdk,
            previous_event_id=before.id if before else None,
            next_event_id=after.id if after else None,
            grouping=self.grouping,
        )


def store(
    project: int,
    issue: int,
    payload: bytes,
    *,
    fingerprint: int,
    sdk: str,
    received_ms: int,
    grouping: GroupingOf,
) -> StoredEvent:
    """An event as it is kept. Raises msgspec.DecodeError for what is no event."""
    event: dict[str, Any] = msgspec.json.decode(payload)
    view = from_event(event, sdk, received_ms)
    return StoredEvent(
        project=project,
        issue=issue,
        opened=issue_id(project, fingerprint),
        fingerprint=fingerprint,
        id=str(event["id"]).lower(),
        kind=str(event.get("kind", "")),
        culprit=_culprit(event["error"].get("stack") or [{}]),
        payload=payload,
        received_ms=received_ms,
        view=view,
        grouping=grouping,
        order=(view.timestamp, uuid.UUID(event["id"]).hex),
    )


def _culprit(stack: list[dict[str, Any]]) -> str:
    top = next((frame for frame in stack if frame.get("inApp")), stack[0])
    return " in ".join(filter(None, (top.get("function"), top.get("file"))))


def parts_of(events: list[StoredEvent]) -> set[str]:
    """The issues of the events, and those that are merged into them."""
    return {hex64(number) for event in events for number in (event.issue, event.opened)}


def own_parts(events: list[StoredEvent]) -> list[str]:
    """What groups the events of the issue's own fingerprint; the newest event's, where the sample gives it no fingerprint."""
    own = [event for event in events if event.opened == event.issue]
    return (own or events)[-1].grouping.parts


def users_of(events: list[StoredEvent]) -> int:
    """Distinct users; events without one count none."""
    return len({event.view.user for event in events} - {""})


def issue_view(events: list[StoredEvent], state: IssueView) -> IssueView:
    """What a query sees of the issue: its state, and figures for its whole life."""
    return msgspec.structs.replace(
        state,
        first_seen=events[0].time,
        last_seen=events[-1].time,
        events=len(events),
        users=users_of(events),
    )


def issue_answer(
    life: list[StoredEvent], counted: list[StoredEvent], state: IssueView, trend: list[int]
) -> Issue:
    """The issue: `life` is all of its events, oldest first, `counted` those in range and query."""
    first, last = life[0], life[-1]
    return Issue(
        id=hex64(first.issue),
        project_id=str(first.project),
        error_type=last.view.type,
        message=last.view.message,
        culprit=last.culprit,
        status=state.status,
        regressed=state.regressed,
        platform=last.view.platform,
        first_seen=iso(first.time),
        last_seen=iso(last.time),
        events=len(counted),
        users=users_of(counted),
        total_events=len(life),
        total_users=users_of(life),
        first_release=first.view.release,
        last_release=last.view.release,
        environments=sorted({event.view.environment for event in life}),
        assignee=state.assignee or None,
        resolved_in=None,
        ignore_until=None,
        fingerprints=sorted({hex64(event.fingerprint) for event in life}),
        trend=trend,
    )
