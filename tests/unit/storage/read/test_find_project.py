from typing import Any

import pytest

from schemas.ids import hex64
from storage.errors import NotFound
from storage.read.execute import Executor, Limits, Sql
from storage.read.issues.issue_calls import FindProject
from storage.read.reader import Session


async def test_an_issue_that_others_have_read_costs_as_much_as_one_that_isnt_there() -> None:
    """Only issue 1 exists, and other reads remembered its project."""
    session, statements = Session(Executor(["http://x/y"], Limits()), lambda: 0), list[Sql]()

    async def rows(sql: Sql) -> Any:
        statements.append(sql)
        return [[7]] if 1 in sql.values.values() else [[0]]

    session.rows = rows
    session.projects = {1: 7}
    assert await FindProject(hex64(1)).fetch(session) == 7
    with pytest.raises(NotFound):
        await FindProject(hex64(2)).fetch(session)
    known, missing = statements
    assert known.text == missing.text
    # An aggregate: ClickHouse also sends a row for an issue that isn't there.
    assert "SELECT max(project_id)" in known.text
