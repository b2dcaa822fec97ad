"""What is doubtful in a query though it can be answered: keys that no event of the project has."""

from collections.abc import Sequence

import msgspec

from dashboard.dependencies import State
from dashboard.http.conditional import Tagged, tagged
from query.keys import tag_keys
from query.parse import parse
from schemas.errors import QueryError
from storage.reader.answers import KeyWarning
from storage.reader.completion import FindUnknownKeys
from storage.reader.issue_calls import FindProject


class _Warnings(msgspec.Struct, frozen=True):
    """An answer of the response cache."""

    warnings: list[KeyWarning]


async def of_project(state: State, project: int, query: str) -> list[KeyWarning]:
    """The doubtful keys of a query over a project; of one that doesn't parse nothing is said here."""
    keys = _tags(query)
    return await _unknown(state, project, keys) if keys else []


async def of_issue(state: State, issue: str, query: str) -> list[KeyWarning]:
    """The same of a query over an issue."""
    keys = _tags(query)
    return await _unknown(state, await state.parts.reader.read(FindProject(issue)), keys) if keys else []


def _tags(query: str) -> list[str]:
    try:
        return tag_keys(parse(query))
    except QueryError:
        return []


async def _unknown(state: State, project: int, keys: Sequence[str]) -> list[KeyWarning]:
    async def make() -> Tagged:
        return tagged(_Warnings(await state.parts.reader.read(FindUnknownKeys(project, keys))))

    answer = await state.shared.answer(("unknown keys", project, *keys), make)
    return msgspec.json.decode(answer.body, type=_Warnings).warnings
