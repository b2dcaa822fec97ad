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
    """An issue's newest event as it was sent; None where it has none that can be read, or needs none."""

    issue: int
    whole: int
    """The issue that it is merged into, or itself."""
    event: Raw | None


class ListNewestEvents(ReadCall[list[IssueEvent]], frozen=True):
    """The newest events of the issues that a stack has decided by a version, also of merged ones: of the `wanted`, and of the latest seen.

    Of `known` issues, and of wanted ones that something else has decided, the event is None.
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
        decided = f"(grouping_rule = 'stack' AND grouping_version = {version})"
        wanted = statement.numbers(list(self.wanted))
        rows = await session.rows(
            statement.ready(
                f"SELECT issue_id, merged_into, last_event, {decided} AS decided, issue_id IN {wanted} AS is_wanted"
                f" FROM issues FINAL WHERE {statement.project} AND deleted = 0 AND (decided OR is_wanted)"
                f" ORDER BY is_wanted DESC, last_seen DESC LIMIT {self.limit:d}"
            )
        )
        events = {issue: event for issue, _, event, decided, _ in rows if decided and issue not in self.known}
        sent: dict[int, Raw | None] = {}
        names = list(events)
        for first in range(0, len(names), _AT_ONCE):
            batch = names[first : first + _AT_ONCE]
            payloads = await stored_payloads(session, question, [events[issue] for issue in batch])
            for issue in batch:
                payload = payloads.get(events[issue])
                sent[issue] = readable(events[issue], payload) if payload else None
        return [IssueEvent(issue, whole or issue, sent.get(issue)) for issue, whole, *_ in rows]
