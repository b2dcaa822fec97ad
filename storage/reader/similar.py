"""Issues with similar grouping parts: candidates for merging, each with the reason."""

import asyncio
import math
from collections.abc import Mapping, Sequence
from typing import Final

from schemas.ids import hex64
from schemas.times import iso
from storage.answers import Similar, SimilarIssues
from storage.reader.execute import Sql
from storage.reader.issue_rows import ISSUE_COLUMNS, IssueRow
from storage.reader.question import Question
from storage.reader.reader import ReadCall, Session

MAX_SIMILAR: Final = 50
_MIN_SHARE: Final = 0.1


class ListSimilarIssues(ReadCall[SimilarIssues], frozen=True):
    """The issues of a project that share the most parts with an issue; rare parts weigh more."""

    issue: str
    limit: int = 10

    async def answer(self, session: Session) -> SimilarIssues:
        issue_ref = await session.issue_ref(self.issue)
        parts = list(dict.fromkeys(issue_ref.grouping_parts))
        if not parts:
            return SimilarIssues(similar=[])
        question = session.question_ever(issue_ref.project_id)
        ((total,),), having = await asyncio.gather(
            session.rows(_size(question)), session.rows(_frequency(question, parts))
        )
        frequency: dict[str, int] = dict(having)
        weights = {part: weight(total, frequency.get(part, 1)) for part in parts}
        limit = min(self.limit, MAX_SIMILAR)
        rows = await session.rows(_candidates(question, issue_ref.issue_id, weights, limit))
        return SimilarIssues(
            similar=[
                _answer(IssueRow(*columns), parts, others, share)
                for share, others, *columns in rows
                if share >= _MIN_SHARE
            ]
        )


def weight(issues: int, having: int) -> float:
    """The weight of a part that `having` of the project's issues have."""
    return math.log(1 + issues / max(1, having))


def _size(question: Question) -> Sql:
    statement = question.statement()
    return statement.ready(f"SELECT count() FROM {statement.issues}")


def _frequency(question: Question, parts: Sequence[str]) -> Sql:
    statement = question.statement()
    wanted = statement.parameters.add(list(parts), "Array(String)")
    return statement.ready(
        "SELECT part, count() FROM (SELECT arrayJoin(arrayDistinct(grouping_parts)) AS part FROM"
        f" {statement.issues} AND hasAny(grouping_parts, {wanted})) WHERE part IN {wanted} GROUP BY part"
    )


def _candidates(question: Question, issue: int, weights: Mapping[str, float], limit: int) -> Sql:
    statement = question.statement()
    parts = statement.parameters.add(list(weights), "Array(String)")
    values = statement.parameters.add(list(weights.values()), "Array(Float64)")
    own = statement.parameters.add(issue, "UInt64")
    whole = statement.parameters.add(sum(weights.values()), "Float64")
    mean = statement.parameters.add(sum(weights.values()) / len(weights), "Float64")
    shared = f"arrayIntersect(grouping_parts, {parts})"
    weighed = f"arraySum(part -> transform(part, {parts}, {values}, 0.), {shared})"
    others = f"(length(arrayDistinct(grouping_parts)) - length({shared}))"
    return statement.ready(
        f"SELECT round({weighed} / ({whole} + {mean} * {others}), 4) AS share, grouping_parts, {ISSUE_COLUMNS}"
        f" FROM {statement.issues} AND issue_id != {own} AND hasAny(grouping_parts, {parts})"
        f" ORDER BY share DESC, last_seen DESC, issue_id LIMIT {limit:d}"
    )


def _answer(row: IssueRow, parts: Sequence[str], others: Sequence[str], share: float) -> Similar:
    shared = [part for part in parts if part in others]
    return Similar(
        id=hex64(row.issue_id),
        error_type=row.error_type,
        message=row.message,
        culprit=row.culprit,
        status=row.status,
        last_seen=iso(row.last_seen),
        total_events=row.events,
        share=share,
        shared=shared,
        reason=f"{len(shared)} of {len(parts)} parts are equal: {', '.join(shared)}",
    )
