"""Issues with similar grouping parts: candidates for merging, each with the reason."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any, Final

from grouping.similarity import MAX_CANDIDATES, Match, compared_parts, most_similar
from schemas.ids import hex64
from schemas.read_api import Similar, SimilarIssues
from schemas.times import iso
from storage.read.execute import Sql
from storage.read.query.query_sql import STATUS
from storage.read.query.question import Question
from storage.read.reader import ReadCall, Session

MAX_SIMILAR: Final = 50
_MIN_SHARE: Final = 0.1
_LISTED: Final = 3
_CHARACTERS: Final = 100


class ListSimilarIssues(ReadCall[SimilarIssues], frozen=True):
    """The issues of a project that are most similar to an issue by their parts; rare words weigh more."""

    issue: str
    limit: int = 10

    async def fetch(self, session: Session) -> SimilarIssues:
        row = await session.issue(self.issue)
        parts = compared_parts(row.grouping_parts)
        if not parts:
            return SimilarIssues(similar=[])
        question = session.question_ever(row.project_id)
        rows = await session.rows(_candidates(question, row.issue_id, parts))
        # In a thread: the comparison must not block the event loop.
        matches = await asyncio.to_thread(most_similar, parts, [row[0] for row in rows], time.thread_time)
        return SimilarIssues(
            similar=[
                _to_similar(rows[match.position], match)
                for match in matches[: min(self.limit, MAX_SIMILAR)]
                if match.share >= _MIN_SHARE
            ]
        )


def _candidates(question: Question, issue: int, parts: Sequence[str]) -> Sql:
    """The issues that share a part with an issue, those with the rarest parts first.

    Grouping parts, number, type, message, culprit, status, last event (Unix ms) and number of events. Thousands
    may share one: of columns that aren't needed, each costs.
    """
    statement = question.statement()
    wanted = statement.parameters.add(list(parts), "Array(String)")
    own = statement.parameters.add(issue, "UInt64")
    having = f"sumForEach(arrayMap(part -> toUInt64(has(grouping_parts, part)), {wanted})) OVER ()"
    # The issue itself has each part too.
    rarity = f"arraySum((part, n) -> has(grouping_parts, part) / (n + 1), {wanted}, {having})"
    return statement.ready(
        f"SELECT grouping_parts, issue_id, error_type, message, culprit, {STATUS},"
        f" toUnixTimestamp64Milli(last_seen), events FROM {statement.issues}"
        f" AND hasAny(grouping_parts, {wanted}) AND issue_id != {own}"
        f" ORDER BY {rarity} DESC, last_seen DESC, issue_id LIMIT {MAX_CANDIDATES:d}"
    )


def _to_similar(row: Sequence[Any], match: Match) -> Similar:
    _, issue, error_type, message, culprit, status, last_seen, events = row
    return Similar(
        id=hex64(issue),
        error_type=error_type,
        message=message,
        culprit=culprit,
        status=status,
        last_seen=iso(last_seen),
        total_events=events,
        share=match.share,
        shared=match.same,
        reason=_reason(match),
    )


def _reason(match: Match) -> str:
    count = len(match.same) + len(match.only_here)
    sentences = [f"{len(match.same)} of {count} parts are equal: {_listed(match.same)}"]
    for where, parts in (("only here", match.only_here), ("only there", match.only_there)):
        if parts:
            sentences.append(f"{where}: {_listed(parts)}")
    return "; ".join(sentences)


def _listed(parts: Sequence[str]) -> str:
    more = f" and {len(parts) - _LISTED} more" if len(parts) > _LISTED else ""
    return ", ".join(part[:_CHARACTERS] for part in parts[:_LISTED]) + more
