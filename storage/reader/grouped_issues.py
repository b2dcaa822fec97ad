"""The issues of a project that grouping decided by itself, with the parts of their fingerprints."""

from typing import Final, NamedTuple

from storage.reader.reader import ReadCall, Session

MAX_ISSUES: Final = 2000


class GroupedIssue(NamedTuple):
    """An issue: its own fingerprint and those merged into it, its events, and the parts of its own fingerprint."""

    issue: int
    whole: int
    """The issue that it is merged into, or itself."""
    fingerprints: list[int]
    events: int
    parts: list[str]


class ListGroupedIssues(ReadCall[list[GroupedIssue]], frozen=True):
    """The issues last seen that a stack or a message decided by a version, also merged ones."""

    project: int
    version: str
    limit: int = MAX_ISSUES

    async def answer(self, session: Session) -> list[GroupedIssue]:
        statement = session.question_ever(self.project).statement()
        version = statement.parameters.add(self.version, "String")
        rows = await session.rows(
            statement.ready(
                "SELECT issue_id, if(merged_into = 0, issue_id, merged_into), fingerprints, events, grouping_parts"
                f" FROM issues FINAL WHERE {statement.project} AND deleted = 0"
                f" AND grouping_version = {version} AND grouping_rule IN ('stack', 'message')"
                f" ORDER BY last_seen DESC LIMIT {self.limit:d}"
            )
        )
        return [GroupedIssue(*row) for row in rows]
