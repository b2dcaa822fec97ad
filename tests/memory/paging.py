"""Pages of issues with the cursors of the real reader."""

from storage.reader.answers import Issue, IssuePage, Sort
from storage.reader.cursors import IssueCursor, first_cursor, write_cursor
from storage.reader.ranges import Range

Ranked = tuple[tuple[int, str], Issue]
"""Key and id by which a list is ordered, and the issue."""


def issue_page(
    ranked: list[Ranked], sort: Sort, limit: int, after: IssueCursor | None, span: Range, now_ms: int
) -> IssuePage:
    """The first issues that a cursor says were not given yet."""
    rest = [(key, issue) for key, issue in ranked if after is None or not _given(key, after)]
    page, more = rest[:limit], len(rest) > limit
    if not more:
        return IssuePage([issue for _, issue in page], None)
    lowest, ids = page[-1][0][0], [int(issue.id, 16) for _, issue in page]
    cursor = first_cursor(sort, span, now_ms, lowest, ids) if after is None else after.after(lowest, ids)
    return IssuePage([issue for _, issue in page], write_cursor(cursor))


def _given(key: tuple[int, str], after: IssueCursor) -> bool:
    if after.issues is not None:
        return int(key[1], 16) in after.issues
    return key >= (after.key, after.issue)
