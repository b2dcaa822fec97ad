"""A change that was made is answered as made, from its record in the log, whatever ClickHouse does."""

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest
from msgspec.structs import replace

from control.issue_changes import IssueChanges
from schemas.changes import Update
from schemas.ids import hex64
from schemas.issues import Command, IssueRecord
from schemas.life import Life
from schemas.merges import Figures, Member
from storage.client import ClickHouseError
from storage.errors import QueryTooExpensive, StorageUnavailable
from storage.reader.issue_calls import CountIssues, GetIssueRow, GetIssueVersions, IssueVersion
from storage.reader.issue_rows import RangeCounts, answer, issue_of, row_of
from storage.reader.ranges import HOUR_MS
from storage.reader.reader import Reader

NOW_MS = 1_760_000_000_000
HOUR = NOW_MS // HOUR_MS
PROJECT = 7


def a_record(number: int) -> IssueRecord:
    return IssueRecord(
        id=hex64(number),
        project_id=str(PROJECT),
        fingerprints=(hex64(number),),
        error_type="E",
        message="m",
        culprit="f in a.js",
        first_seen_ms=NOW_MS - 20 * 24 * HOUR_MS,
        last_seen_ms=NOW_MS,
        events=9,
        users=4,
        hours={HOUR: 2, HOUR - 30: 1, HOUR - 24 * 20: 6},
        version=1,
    )


class Log:
    """The topic of issues: each command is in at once."""

    def __init__(self) -> None:
        self.records = {hex64(number): a_record(number) for number in (1, 2)}

    async def apply(self, commands: Sequence[Command]) -> dict[str, IssueRecord]:
        for command in commands:
            record = self.records[command.issue]
            if command.kind == "merge":
                (other,) = command.data["issues"]
                part = Member(other, "j", 1, Figures(events=9))
                record = replace(
                    record,
                    fingerprints=(*record.fingerprints, other),
                    events=18,
                    life=Life(members={other: part}),
                )
                self.records[other] = replace(self.records[other], merged_into=record.id, version=2)
            else:
                record = replace(record, status=command.data["status"])
            self.records[command.issue] = replace(record, version=record.version + 1)
        return {command.issue: self.records[command.issue] for command in commands}


class ClickHouse:
    """What the reader finds: the records as they were before any change, or an error once the changes are made."""

    def __init__(self, log: Log, trouble: Exception | None = None, late: bool = False) -> None:
        self._log = log
        self._before = dict(log.records)
        self._trouble = trouble
        self._late = late

    async def read(self, call: object) -> Any:
        match call:
            case GetIssueRow(issue=issue):
                return row_of(self._before[issue], NOW_MS)
            case GetIssueVersions(issues=issues):
                if self._trouble is not None:
                    raise self._trouble
                records = self._before if self._late else self._log.records
                return {
                    issue: IssueVersion(records[issue].version, records[issue].merged_into)
                    for issue in issues
                }
            case CountIssues(rows=rows):
                return [answer(row, RangeCounts(len(row.fingerprints), 1, (0,) * 14)) for row in rows]
            case _:
                raise AssertionError(call)


class HangingClickHouse(ClickHouse):
    """It knows the issues, and answers nothing once they are changed."""

    async def read(self, call: object) -> Any:
        if not isinstance(call, GetIssueRow):
            await asyncio.Event().wait()
        return await super().read(call)


def changes(reader: Any, log: Log, visible_seconds: float = 5.0) -> IssueChanges:
    return IssueChanges(cast(Reader, reader), log, lambda: NOW_MS, visible_seconds)


TROUBLE: list[Exception] = [
    StorageUnavailable("ClickHouse took too long"),
    QueryTooExpensive("reads too many rows"),
    ClickHouseError("nobody knows"),
]


@pytest.mark.parametrize("trouble", TROUBLE, ids=lambda error: type(error).__name__)
async def test_a_change_that_was_made_is_answered_though_clickhouse_does_not_answer(
    trouble: Exception,
) -> None:
    log = Log()
    many = changes(ClickHouse(log, trouble), log)
    changed = await many.update_many(PROJECT, [hex64(1), hex64(2)], Update(status="resolved"), by="ann")
    assert [(one.id, one.status) for one in changed] == [(hex64(1), "resolved"), (hex64(2), "resolved")]
    assert [(one.events, one.users, one.total_events, one.total_users) for one in changed] == [
        (3, 3, 9, 4)
    ] * 2
    assert (sum(changed[0].trend), changed[0].trend[-1]) == (3, 2)


async def test_a_server_that_hangs_does_not_hold_up_the_answer_to_a_change() -> None:
    log = Log()
    changed = await changes(HangingClickHouse(log), log, visible_seconds=0.05).update(
        hex64(1), Update(status="ignored"), by="ann"
    )
    assert (changed.status, changed.total_events) == ("ignored", 9)


async def test_a_merge_is_answered_in_figures_that_agree_while_the_writer_is_behind() -> None:
    log = Log()
    changed = await changes(ClickHouse(log, late=True), log, visible_seconds=0.05).merge(
        hex64(1), [hex64(2)], by="ann"
    )
    assert (changed.fingerprints, changed.total_events) == ([hex64(1), hex64(2)], 18)
    # What the range counts is asked for all fingerprints that the record has.
    assert changed.events == 2


async def test_a_snooze_that_has_ended_reads_as_open_in_a_record_as_in_its_row() -> None:
    asleep = replace(a_record(1), status="ignored", ignore_until={"time": "2020-01-01T00:00:00.000Z"})
    assert issue_of(asleep, NOW_MS).status == "open"


@pytest.mark.parametrize(("events", "users"), [(12, 5), (3, 3), (9, 9)])
def test_the_totals_are_never_less_than_what_is_counted_of_them(events: int, users: int) -> None:
    shown = answer(row_of(a_record(1), NOW_MS), RangeCounts(events, users))
    assert (shown.events, shown.users) == (events, users)
    assert shown.total_events >= shown.events
    assert shown.total_users >= shown.users
