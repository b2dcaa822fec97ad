"""Calls about tags, and about what a query may go on with."""

from collections.abc import Sequence

from msgspec.structs import replace

from query.keys import KEYS, nearest
from storage.reader import completion, facets
from storage.reader.answers import Keys, KeyWarning, TagFacets, TagValue, TagValues
from storage.reader.execute import Rows
from storage.reader.parameters import Sql
from storage.reader.question import Question
from storage.reader.session import Session


async def issue_tags(
    session: Session, issue: str, query: str, start: int | None, end: int | None
) -> TagFacets:
    """The most frequent values of each tag among an issue's events."""
    place = await session.place(issue)
    asked = session.question_ever(place.project_id, query, start, end)
    return await _facets(session, asked, place.fingerprints)


async def project_tags(
    session: Session, project: int, query: str, start: int | None, end: int | None
) -> TagFacets:
    """The most frequent values of each tag among a project's events."""
    return await _facets(session, session.question(project, query, start, end), None)


async def tag_values(session: Session, project: int, key: str, prefix: str) -> TagValues:
    """Values of a tag that begin with the prefix."""
    return await _values(
        session, completion.tag_values(session.question(project, "", None, None), key, prefix)
    )


async def field_values(session: Session, project: int, field: str, prefix: str) -> TagValues:
    """Values of a field of the query language that begin with the prefix."""
    return await _values(
        session, completion.field_values(session.question(project, "", None, None), field, prefix)
    )


async def keys(session: Session, project: int, prefix: str) -> Keys:
    """Keys that begin with the prefix: the language's own, then tags as a query names them."""
    rows = await session.rows(completion.tag_keys(session.question(project, "", None, None), prefix))
    return Keys([*completion.known_keys(prefix), *(completion.as_key(key) for key, _ in rows)])


async def unknown_keys(session: Session, project: int, keys: Sequence[str]) -> list[KeyWarning]:
    """Which of these tags no event of the project has, each with the known keys that are most like it."""
    if not keys:
        return []
    ever = session.question_ever(project, "", None, None)
    used = {key for (key,) in await session.rows(completion.used_keys(ever, keys))}
    unknown = [key for key in keys if key not in used]
    if not unknown:
        return []
    lately = session.question(project, "", None, None)
    tags = [key for key, _ in await session.rows(completion.tag_keys(lately, "", completion.MANY))]
    return [KeyWarning(key, nearest(key, [*KEYS, *tags])) for key in unknown]


async def _facets(session: Session, asked: Question, fingerprints: Sequence[int] | None) -> TagFacets:
    if facets.answers_by_day(asked, fingerprints):
        rows = await session.rows(facets.by_day(asked))
        return TagFacets(tags=facets.facets(rows), sampled=False, sample_events=0)
    days: Rows = ()
    if fingerprints is not None and facets.counted_by_day(asked):
        days = await session.rows(facets.days(asked, fingerprints))
        many = sum(events for _, events in days)
    else:
        many = (await session.rows(facets.size(asked, fingerprints)))[0][0]
    sampled = many > facets.SAMPLE
    if sampled and fingerprints is not None and facets.has_days(asked):
        days = days or await session.rows(facets.days(asked, fingerprints))
        asked = replace(asked, span=facets.sampled_range(days, asked.span))
    rows = await session.rows(facets.by_event(asked, fingerprints, sampled))
    return TagFacets(tags=facets.facets(rows), sampled=sampled, sample_events=min(many, facets.SAMPLE))


async def _values(session: Session, sql: Sql) -> TagValues:
    return TagValues([TagValue(value, int(events)) for value, events in await session.rows(sql)])
