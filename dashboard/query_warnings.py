"""Warnings about valid queries: keys that no event of the project has."""

from dashboard.dependencies import State
from query.keys import tag_keys
from query.parse import parse
from schemas.errors import QueryError
from schemas.read_api import KeyWarning
from storage.read.counts.completion import FindUnknownKeys
from storage.read.issues.issue_calls import FindProject


async def of_project(state: State, project: int, query: str) -> list[KeyWarning]:
    """The unknown keys of a query over a project; none if it doesn't parse."""
    keys = _tags(query)
    return await state.dependencies.reader.read(FindUnknownKeys(project, keys)) if keys else []


async def of_issue(state: State, issue: str, query: str) -> list[KeyWarning]:
    """The unknown keys of a query over an issue; none if it doesn't parse."""
    if not _tags(query):
        return []
    return await of_project(state, await state.dependencies.reader.read(FindProject(issue)), query)


def _tags(query: str) -> list[str]:
    try:
        return tag_keys(parse(query))
    except QueryError:
        return []
