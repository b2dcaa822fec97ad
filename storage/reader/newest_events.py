"""The newest event of each of a project's issues, complete, for comparing issues."""

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from msgspec import Raw

from storage.reader.event_rows import readable
from storage.reader.payloads import stored_payloads
from storage.reader.reader import ReadCall, Session

MAX_ISSUES: Final = 500
_AT_ONCE: Final = 100


class IssueEvent(NamedTuple):
    """An issue's newest event as it was sent; None where it has none that can be read."""

    issue: int
    event: Raw | None


class ListNewestEvents(ReadCall[list[IssueEvent]], frozen=True):
    """The newest events of the issues that a stack has decided by a version, also of merged ones: of the `wanted`, and of the latest seen.

    Issues that are `known` are left out.
    """

    project: int
    version: str
    wanted: Sequence[int]
    known: Collection[int] = ()
    limit: int = MAX_ISSUES

    async def answer(self, session: Session) -> list[IssueEvent]:
        question = session.question_ever(self.project)
        statement = question.statement()
        version = statement.parameters.add(self.version, "String")
        rows = await session.rows(
            statement.ready(
                f"SELECT issue_id, last_event FROM issues FINAL WHERE {statement.project} AND deleted = 0"
                f" AND grouping_rule = 'stack' AND grouping_version = {version}"
                f" ORDER BY issue_id IN {statement.numbers(list(self.wanted))} DESC, last_seen DESC LIMIT {self.limit:d}"
            )
        )
        events = {int(issue): int(event) for issue, event in rows if issue not in self.known}
        found: list[IssueEvent] = []
        names = list(events)
        for first in range(0, len(names), _AT_ONCE):
            batch = names[first : first + _AT_ONCE]
            payloads = await stored_payloads(session, question, [events[issue] for issue in batch])
            for issue in batch:
                sent = payloads.get(events[issue])
                found.append(IssueEvent(issue, readable(events[issue], sent) if sent else None))
        return found
