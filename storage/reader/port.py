"""The read port: each read call is a struct, and one method takes them all.

`project` is its number, `issue` sixteen hexadecimal digits, `event` a uuid as text. `start` and `end` are Unix milliseconds of the
event's time, `start` included and `end` not; without them a range begins at the full hour 14 days ago and has no end. Merged issues
are one: a call takes the id of any of them. Every call may raise BadQuery, NotFound, QueryTooExpensive and StorageUnavailable,
those for one event DamagedPayload too: all are ReadError.
"""

from typing import Generic, Protocol, TypeVar

from msgspec import Struct

from storage.reader.question import Question
from storage.reader.session import Session

A = TypeVar("A")
A_co = TypeVar("A_co", covariant=True)


class ReadCall(Struct, Generic[A_co], frozen=True):
    """What is asked; `answer` reads it from ClickHouse."""

    async def answer(self, session: Session) -> A_co:
        """The answer of this call."""
        raise NotImplementedError


class ProjectCall(ReadCall[A_co], Generic[A_co], frozen=True):
    """Of a project's events in a range, those that the query matches."""

    project: int
    query: str = ""
    start: int | None = None
    end: int | None = None

    def question(self, session: Session) -> Question:
        """The question over the range. Raises BadQuery."""
        return session.question(self.project, self.query, self.start, self.end)


class IssueCall(ReadCall[A_co], Generic[A_co], frozen=True):
    """Of an issue's events in a range, those that the query matches."""

    issue: str
    query: str = ""
    start: int | None = None
    end: int | None = None

    def question(self, session: Session, project: int) -> Question:
        """The question over the range. Raises BadQuery."""
        return session.question(project, self.query, self.start, self.end)

    def question_ever(self, session: Session, project: int) -> Question:
        """The same; without a range over all events that are kept."""
        return session.question_ever(project, self.query, self.start, self.end)


class ReadPort(Protocol):
    """`storage.reader.reader.Reader`, or a double without ClickHouse."""

    async def read(self, call: ReadCall[A]) -> A:
        """The answer of a call."""
        ...

    async def ping(self) -> None:
        """Raises StorageUnavailable where the database doesn't answer."""
        ...
