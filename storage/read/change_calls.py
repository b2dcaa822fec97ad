"""Reads of who changed what."""

from collections.abc import Sequence

from schemas.read_api import ChangePage, ChangeRow
from schemas.times import iso
from storage.read.execute import Sql
from storage.read.query.cursors import ChangeCursor, read_cursor, write_cursor
from storage.read.query.query_sql import Parameters
from storage.read.reader import ReadCall, Session, check_limit


class ListChanges(ReadCall[ChangePage], frozen=True):
    """A page of the changes of some projects, newest first; with None of all, also of erased ones and sign-ins."""

    projects: Sequence[int] | None
    limit: int = 50
    cursor: str | None = None

    async def fetch(self, session: Session) -> ChangePage:
        check_limit(self.limit)
        rows = await session.rows(self._sql(read_cursor(self.cursor, ChangeCursor)))
        page = [
            ChangeRow(change, str(project), kind, by, via, iso(at), before, after)
            for at, change, project, kind, by, via, before, after in rows[: self.limit]
        ]
        has_more = len(rows) > self.limit
        last = ChangeCursor(*rows[self.limit - 1][:2]) if has_more else None
        return ChangePage(page, write_cursor(last) if last else None)

    def _sql(self, last: ChangeCursor | None) -> Sql:
        """Up to one more than the limit."""
        parameters, conditions = Parameters(), ["1"]
        if self.projects is not None:
            conditions.append(f"project_id IN {parameters.add([*self.projects], 'Array(UInt32)')}")
        if last is not None:
            moment, change = parameters.moment(last.time), parameters.add(last.id, "String")
            conditions.append(f"(at, id) < ({moment}, {change})")
        return Sql(
            "SELECT toUnixTimestamp64Milli(at), id, project_id, kind, by, via, before, after FROM changes FINAL"
            f" WHERE {' AND '.join(conditions)} ORDER BY at DESC, id DESC LIMIT {self.limit + 1:d}",
            parameters.values,
        )
