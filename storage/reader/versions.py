"""Which version of an issue is read at present: how one who changed it knows that the change is to be seen."""

from collections.abc import Sequence

from msgspec import Struct

from schemas.ids import hex64
from storage.reader.identifiers import issue_number
from storage.reader.parameters import Parameters, Sql
from storage.reader.port import ReadCall
from storage.reader.session import Session


class IssueVersion(Struct, frozen=True):
    """The version of an issue's newest row, and the issue that it was merged into."""

    version: int
    merged_into: str | None


class GetIssueVersions(ReadCall[dict[str, IssueVersion]], frozen=True):
    """By issue, which version of it is read at present; for those that are there."""

    project: int
    issues: Sequence[str]

    async def answer(self, session: Session) -> dict[str, IssueVersion]:
        """The versions by issue."""
        rows = await session.rows(_rows(self.project, [issue_number(issue) for issue in self.issues]))
        return {
            hex64(issue): IssueVersion(version, hex64(merged_into) if merged_into else None)
            for issue, version, merged_into in rows
        }


def _rows(project: int, issues: Sequence[int]) -> Sql:
    parameters = Parameters()
    of_project, numbers = parameters.add(project, "UInt32"), parameters.add(list(issues), "Array(UInt64)")
    text = (
        "SELECT issue_id, version, merged_into FROM issues FINAL"
        f" WHERE project_id = {of_project} AND issue_id IN {numbers} AND deleted = 0"
    )
    return Sql(text, parameters.values)
