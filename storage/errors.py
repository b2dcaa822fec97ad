"""Exceptions of the storage package that its callers handle."""

from typing import Final

from schemas.read_api import EventDetail
from storage.clickhouse_diagnosis import RetryLater


class UnknownUser(Exception):
    """The project holds no event of this user, and none was ever erased."""


class AnotherServer(RetryLater):
    """The address of ClickHouse leads to several servers, or to another one than that of the data."""

    reason = "anotherServer"


class ServerUnavailable(RetryLater):
    """One of the servers doesn't answer, so nothing can be said or done about all of them."""

    reason = "unavailable"


class ServerRefused(Exception):
    """The server answered with an error: its code and its first line."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class ReadError(Exception):
    """Base of the errors of read calls; its text is one sentence for people."""


class BadQuery(ReadError):
    """The parameter `field` is invalid: a query that doesn't parse, a cursor of another list, a bad range."""

    def __init__(self, field: str, message: str) -> None:
        self.field = field
        self.message = message
        super().__init__(f"{field}: {message}")


class QueryTooExpensive(ReadError):
    """The call exceeds its limits on rows, bytes or memory, even on an idle server.

    Narrow the range or the query.
    """


class StorageUnavailable(ReadError):
    """ClickHouse doesn't answer in time or is busy; the call may be retried."""


class DamagedPayload(ReadError):
    """An event's payload can't be read. `detail` has everything else, with null for the event."""

    def __init__(self, detail: EventDetail) -> None:
        super().__init__("the stored content of this event is damaged")
        self.detail = detail


NO_ISSUE: Final = "there is no such issue"


class NotFound(ReadError):
    """The issue or event doesn't exist, or no longer."""
