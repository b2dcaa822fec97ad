"""What an operation on ClickHouse may end in apart from its answer; each says what the caller can do."""

from schemas.errors import QueryError
from storage.reader.answers import EventDetail


class UnknownUser(Exception):
    """The project holds no event of this user, and none was ever erased."""


class ReadError(Exception):
    """Any of the below; its text is one sentence for people."""


class BadQuery(ReadError):
    """The question can't be answered as it was put: a query that doesn't parse, a foreign cursor, a bad range.

    `field` names the parameter; for a query's text `position` (code points from 0) and `expected` say where and what.
    """

    def __init__(self, field: str, message: str, position: int | None = None, expected: str = "") -> None:
        self.field = field
        self.message = message
        self.position = position
        self.expected = expected
        super().__init__(f"{field}: {message}")

    @classmethod
    def of(cls, error: QueryError) -> "BadQuery":
        """What a refused text of the query language is."""
        return cls("query", error.message, error.position, error.expected)


class QueryTooExpensive(ReadError):
    """The answer takes more rows, bytes or memory than one call may use, also on an idle server: narrow the range or the query."""


class StorageUnavailable(ReadError):
    """ClickHouse doesn't answer in time, or is busy: the same call may work in a moment."""


class DamagedPayload(ReadError):
    """An event's stored content can't be read. All else is known: `detail` has it, with null for the event."""

    def __init__(self, detail: EventDetail) -> None:
        super().__init__("the stored content of this event is damaged")
        self.detail = detail


class NotFound(ReadError):
    """There is no such issue or event, or no longer."""
