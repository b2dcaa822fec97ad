"""Warnings about valid queries: keys that no event of the project has."""

from collections.abc import Sequence

import msgspec

from dashboard.dependencies import State
from dashboard.http.responses import TaggedBody, encode_tagged
from query.keys import tag_keys
from query.parse import parse
from schemas.errors import QueryError
from schemas.read_api import KeyWarning
from storage.read.counts.completion import FindUnknownKeys
from storage.read.issues.issue_calls import FindProject


class _Warnings(msgspec.Struct, frozen=True):
    """An entry of the response cache."""

    warnings: list[KeyWarning]


async def of_project(state: State, project: int, query: str) -> list[KeyWarning]:
    """The unknown keys of a query over a project; none if it doesn't parse."""
    keys = _tags(query)
    return await _unknown(state, project, keys) if keys else []


async def of_issue(state: State, issue: str, query: str) -> list[KeyWarning]:
    """The unknown keys of a query over an issue; none if it doesn't parse."""
    keys = _tags(query)
    if not keys:
        return []
    return await _unknown(state, await state.dependencies.reader.read(FindProject(issue)), keys)


def _tags(query: str) -> list[str]:
    try:
        return tag_keys(parse(query))
    except QueryError:
        return []


async def _unknown(state: State, project: int, keys: Sequence[str]) -> list[KeyWarning]:
    async def load() -> TaggedBody:
        return encode_tagged(_Warnings(await state.dependencies.reader.read(FindUnknownKeys(project, keys))))

    answer = await state.response_cache.get_or_load(("unknown keys", project, *keys), load)
    return msgspec.json.decode(answer.body, type=_Warnings).warnings
