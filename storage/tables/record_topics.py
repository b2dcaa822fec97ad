"""The topics whose records become rows of tables that collapse equal rows. Pure."""

from collections.abc import Callable, Iterable
from typing import Final

import pyarrow as pa
from msgspec import Struct

from schemas.change_records import decode_change, is_change
from schemas.issues import decode_activity, decode_issue, decode_outcomes
from schemas.topics import Topic
from storage.tables.record_rows import (
    CHANGES,
    ISSUE_ACTIVITY,
    ISSUES,
    OUTCOMES,
    Row,
    activity_row,
    change_row,
    issue_row,
    newest_issues,
    outcome_row,
)


class RecordTopic(Struct, frozen=True):
    """A topic and a table of its records: `rows` gives the rows of a value, `distinct` leaves out older ones."""

    topic: Topic
    table: str
    schema: pa.Schema
    rows: Callable[[bytes], list[Row]]
    distinct: Callable[[Iterable[Row]], list[Row]] = list


RECORD_TOPICS: Final = (
    RecordTopic(
        Topic.ISSUES, "issues", ISSUES, lambda value: [issue_row(decode_issue(value))], newest_issues
    ),
    RecordTopic(
        Topic.ISSUE_ACTIVITY,
        "issue_activity",
        ISSUE_ACTIVITY,
        lambda value: [] if is_change(value) else [activity_row(decode_activity(value))],
    ),
    RecordTopic(
        Topic.ISSUE_ACTIVITY,
        "changes",
        CHANGES,
        lambda value: [change_row(decode_change(value))] if is_change(value) else [],
    ),
    RecordTopic(
        Topic.OUTCOMES,
        "outcomes",
        OUTCOMES,
        lambda value: [outcome_row(outcome) for outcome in decode_outcomes(value)],
    ),
)
