"""The values of an event and its issue that a query reads."""

from msgspec import Struct

from query.event_fields import extract
from query.tree import ISSUE_FIELDS
from schemas.times import event_time, to_ms


class IssueView(Struct, frozen=True, kw_only=True):
    """The values of an issue, with lifetime counts. Times are Unix ms; `escalated` is 0 for never."""

    status: str = "open"
    regressed: bool = False
    assignee: str = ""
    first_release: str = ""
    first_seen: int = 0
    last_seen: int = 0
    events: int = 0
    users: int = 0
    escalated: int = 0

    @property
    def assigned(self) -> bool:
        return bool(self.assignee)

    def value(self, key: str) -> str:
        """The value of a key in `tree.ISSUE_FIELDS`."""
        return self.assignee if key == "assignee" else self.first_release


class EventView(Struct, frozen=True, kw_only=True, gc=False):
    """The values of an event.

    `""` is an absent field. `timestamp` is the event's time in Unix ms. `issue` is None while unknown.
    """

    type: str = ""
    message: str = ""
    tags: dict[str, str] = {}
    environment: str = ""
    release: str = ""
    platform: str = ""
    os: str = ""
    os_version: str = ""
    model: str = ""
    locale: str = ""
    sdk: str = ""
    user: str = ""
    files: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    timestamp: int = 0
    issue: IssueView | None = None

    def values(self, key: str) -> tuple[str, ...]:
        """The values of a key in `tree.FIELDS` or `ISSUE_FIELDS`, without absent and empty ones."""
        if key in ISSUE_FIELDS:
            return tuple(filter(None, (self.issue.value(key),))) if self.issue is not None else ()
        if key == "file":
            return tuple(filter(None, self.files))
        if key == "function":
            return tuple(filter(None, self.functions))
        value: str = getattr(self, "os_version" if key == "osVersion" else key)
        return (value,) if value else ()


def from_json(payload: bytes, sdk: str, received_ms: int) -> EventView:
    """The view of an event's bytes as sent, equal to its columns.

    Raises query.event_fields.Unreadable if it isn't a JSON object.
    """
    found = extract(payload)
    device, error = found.device, found.error
    places = found.places()
    return EventView(
        type=error.type,
        message=error.message,
        tags=found.tags or {},
        environment=found.environment,
        release=found.release,
        platform=found.platform,
        os=device.os,
        os_version=device.osVersion,
        model=device.model or "",
        locale=device.locale or "",
        sdk=sdk,
        user=(found.user.id if found.user else None) or "",
        files=places.files,
        functions=places.functions,
        timestamp=event_time(to_ms(found.timestamp), received_ms),
    )
