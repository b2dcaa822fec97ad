"""Calls about tags, and about what a query may go on with."""

from collections.abc import Sequence

from msgspec.structs import replace

from query.keys import KEYS, nearest
from storage.reader import completion, facets
from storage.reader.answers import Keys, KeyWarning, TagFacets, TagValue, TagValues
from storage.reader.execute import Rows
from storage.reader.parameters import Sql
from storage.reader.port import IssueCall, ProjectCall, ReadCall
from storage.reader.question import Question
from storage.reader.session import Session


class CountIssueTags(IssueCall[TagFacets], frozen=True):
    """The most frequent values of each tag among an issue's events; without a range, of all that are kept."""

    async def answer(self, session: Session) -> TagFacets:
        """The facets."""
        issue_ref = await session.issue_ref(self.issue)
        return await _facets(
            session, self.question_ever(session, issue_ref.project_id), issue_ref.fingerprints
        )


class CountProjectTags(ProjectCall[TagFacets], frozen=True):
    """The most frequent values of each tag among a project's events; without a query by whole days."""

    async def answer(self, session: Session) -> TagFacets:
        """The facets."""
        return await _facets(session, self.question(session), None)


class CompleteTag(ReadCall[TagValues], frozen=True):
    """Values of a tag that begin with the prefix, of the last 14 days."""

    project: int
    key: str
    prefix: str = ""

    async def answer(self, session: Session) -> TagValues:
        """The values, the most frequent first."""
        question = session.question(self.project, "", None, None)
        return await _values(session, completion.tag_values(question, self.key, self.prefix))


class CompleteField(ReadCall[TagValues], frozen=True):
    """Values of a field of the query language that begin with the prefix, of the last 14 days."""

    project: int
    field: str
    prefix: str = ""

    async def answer(self, session: Session) -> TagValues:
        """The values, the most frequent first."""
        question = session.question(self.project, "", None, None)
        return await _values(session, completion.field_values(question, self.field, self.prefix))


class CompleteKey(ReadCall[Keys], frozen=True):
    """Keys that begin with the prefix: the language's own, then tags of the last 14 days as a query names them."""

    project: int
    prefix: str = ""

    async def answer(self, session: Session) -> Keys:
        """The keys."""
        question = session.question(self.project, "", None, None)
        rows = await session.rows(completion.tag_keys(question, self.prefix))
        return Keys([*completion.known_keys(self.prefix), *(completion.as_key(key) for key, _ in rows)])


class FindUnknownKeys(ReadCall[list[KeyWarning]], frozen=True):
    """Which of these tags no event of the project has, each with the known keys that are most like it."""

    project: int
    keys: Sequence[str]

    async def answer(self, session: Session) -> list[KeyWarning]:
        """A warning for each unknown key."""
        if not self.keys:
            return []
        ever = session.question_ever(self.project, "", None, None)
        used = {key for (key,) in await session.rows(completion.used_keys(ever, self.keys))}
        unknown = [key for key in self.keys if key not in used]
        if not unknown:
            return []
        recent = session.question(self.project, "", None, None)
        tags = [key for key, _ in await session.rows(completion.tag_keys(recent, "", completion.MANY))]
        return [KeyWarning(key, nearest(key, [*KEYS, *tags])) for key in unknown]


async def _facets(session: Session, question: Question, fingerprints: Sequence[int] | None) -> TagFacets:
    if facets.answers_by_day(question, fingerprints):
        rows = await session.rows(facets.by_day(question))
        return TagFacets(tags=facets.facets(rows), sampled=False, sample_events=0)
    days: Rows = ()
    if fingerprints is not None and facets.counted_by_day(question):
        days = await session.rows(facets.days(question, fingerprints))
        many = sum(events for _, events in days)
    else:
        many = (await session.rows(facets.size(question, fingerprints)))[0][0]
    sampled = many > facets.SAMPLE
    if sampled and fingerprints is not None and facets.has_days(question):
        days = days or await session.rows(facets.days(question, fingerprints))
        question = replace(question, span=facets.sampled_range(days, question.span))
    rows = await session.rows(facets.by_event(question, fingerprints, sampled))
    return TagFacets(tags=facets.facets(rows), sampled=sampled, sample_events=min(many, facets.SAMPLE))


async def _values(session: Session, sql: Sql) -> TagValues:
    return TagValues([TagValue(value, int(events)) for value, events in await session.rows(sql)])
