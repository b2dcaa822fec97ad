"""A change is answered from its record in the log, even if ClickHouse fails."""

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest
from msgspec.structs import replace

from control import issue_changes
from control.issue_changes import IssueChanges
from control.issue_commands import Commands
from schemas.changes import Update
from schemas.errors import BadChange, ChangesUnavailable
from schemas.ids import hex64
from schemas.issues import Command, IssueRecord
from schemas.life import Life
from schemas.merges import Figures, Member
from schemas.times import HOUR_MS
from storage.client import ClickHouseError
from storage.errors import NotFound, QueryTooExpensive, StorageUnavailable
from storage.read.issue_rows import RangeCounts, issue_of, row_of, to_issue
from storage.read.issues.issue_calls import CountIssues, FindProject, GetIssueVersions, IssueVersion
from storage.read.reader import Reader

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
    """The topic of issues and its processors: a command is applied immediately, or never unless `answers`."""

    def __init__(self) -> None:
        self.records = {hex64(number): a_record(number) for number in (1, 2)}
        self.answers = True

    async def show(self, issues: Sequence[str]) -> dict[str, IssueRecord]:
        if not self.answers or not self.records.keys() >= {*issues}:
            raise ChangesUnavailable("no answer")
        found = [self.records[issue] for issue in issues]
        return {record.id: self.records[record.merged_into or record.id] for record in found}

    async def apply(self, commands: Sequence[Command]) -> dict[str, IssueRecord]:
        found = await self.show([command.issue for command in commands])
        for command in commands:
            record = found[command.issue]
            if command.project_id in {"", record.project_id}:
                record = self._applied(self.records[record.id], command)
            self.records[record.id] = found[command.issue] = record
        return found

    def _applied(self, record: IssueRecord, command: Command) -> IssueRecord:
        if command.id in record.life.commands:
            return record
        if command.kind == "merge":
            others = [other for other in command.data["issues"] if other != record.id]
            record = replace(record, fingerprints=(*record.fingerprints, *others), events=18)
            record = replace(
                record,
                life=Life(members={other: Member(other, "j", 1, Figures(events=9)) for other in others}),
            )
            for other in others:
                self.records[other] = replace(self.records[other], merged_into=record.id, version=2)
        elif command.kind == "unmerge":
            leaving = command.data["fingerprints"]
            kept = tuple(one for one in record.fingerprints if one not in leaving)
            record = replace(record, fingerprints=kept, events=9, life=Life())
            for other in leaving:
                self.records[other] = replace(self.records[other], merged_into=None, version=3)
        elif command.kind == "update":
            record = replace(record, status=command.data["status"])
        life = replace(record.life, commands=(*record.life.commands, command.id))
        return replace(record, version=record.version + 1, life=life)


class ClickHouse:
    """A reader's rows: the records as they were before any change, or an error once the changes are made."""

    def __init__(self, log: Log, error: Exception | None = None, late: bool = False) -> None:
        self._log = log
        self._before = dict(log.records)
        self._error = error
        self._late = late
        self.project_reads = 0

    async def read(self, call: object) -> Any:
        match call:
            case FindProject(issue=issue):
                self.project_reads += 1
                if issue not in self._before:
                    raise NotFound("there is no such issue")
                return int(self._before[issue].project_id)
            case GetIssueVersions(issues=issues):
                if self._error is not None:
                    raise self._error
                records = self._before if self._late else self._log.records
                return {
                    issue: IssueVersion(records[issue].version, records[issue].merged_into)
                    for issue in issues
                    if issue in records
                }
            case CountIssues(rows=rows):
                return [to_issue(row, RangeCounts(len(row.fingerprints), 1, (0,) * 14)) for row in rows]
            case _:
                raise AssertionError(call)


class FrozenClickHouse:
    """It answers nothing at all."""

    async def read(self, _: object) -> Any:
        await asyncio.Event().wait()


def changes(reader: Any, log: Log, answer_seconds: float = 5.0) -> IssueChanges:
    return IssueChanges(cast(Reader, reader), cast(Commands, log), lambda: NOW_MS, answer_seconds)


ERRORS: list[Exception] = [
    StorageUnavailable("ClickHouse took too long"),
    QueryTooExpensive("reads too many rows"),
    ClickHouseError("unknown"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.holds("contract 4")
async def test_a_change_that_was_made_is_answered_though_clickhouse_does_not_answer(
    error: Exception,
) -> None:
    log = Log()
    many = changes(ClickHouse(log, error), log)
    changed = await many.update_many(PROJECT, [hex64(1), hex64(2)], Update(status="resolved"), by="ann")
    assert [(one.id, one.status) for one in changed] == [(hex64(1), "resolved"), (hex64(2), "resolved")]
    assert [(one.events, one.users, one.total_events, one.total_users) for one in changed] == [
        (3, 3, 9, 4)
    ] * 2
    assert (sum(changed[0].trend), changed[0].trend[-1]) == (3, 2)


async def test_a_merge_is_answered_in_figures_that_agree_while_the_writer_is_behind() -> None:
    log = Log()
    changed = await changes(ClickHouse(log, late=True), log, answer_seconds=0.05).merge(
        hex64(1), [hex64(2)], by="ann"
    )
    assert (changed.fingerprints, changed.total_events) == ([hex64(1), hex64(2)], 18)
    # The range counts all fingerprints of the record.
    assert changed.events == 2


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A change doesn't wait for ClickHouse."""
    monkeypatch.setattr(issue_changes, "LOOK_SECONDS", 0.01)


@pytest.mark.usefixtures("impatient")
async def test_every_change_is_made_and_answered_while_clickhouse_answers_nothing() -> None:
    log = Log()
    blind = changes(FrozenClickHouse(), log, answer_seconds=0.03)
    one, other = hex64(1), hex64(2)
    assert (
        await blind.update(one, Update(status="resolved", resolved_in="next"), by="ann")
    ).status == "resolved"
    await blind.comment(one, "look", by="ann")
    many = await blind.update_many(PROJECT, [one, other], Update(status="ignored"), by="ann")
    assert [issue.status for issue in many] == ["ignored", "ignored"]
    merged = await blind.merge(one, [other], by="ann")
    assert (merged.fingerprints, merged.total_events) == ([one, other], 18)
    # Both are parts of one by now.
    assert len(await blind.update_many(PROJECT, [one, other], Update(status="open"), by="ann")) == 1
    assert [issue.id for issue in await blind.find([other])] == [one]
    assert (await blind.unmerge(other, [other], by="ann")).fingerprints == [one]


@pytest.mark.usefixtures("impatient")
async def test_an_issue_of_another_project_is_refused_by_its_record_too() -> None:
    log = Log()
    log.records[hex64(2)] = replace(log.records[hex64(2)], project_id="8")
    for reader in (ClickHouse(log), FrozenClickHouse()):
        with pytest.raises(BadChange, match="0002 is not an issue of this project"):
            await changes(reader, log).update_many(PROJECT, [hex64(2)], Update(status="open"), by="ann")
    with pytest.raises(BadChange, match="0002 is not an issue of this project"):
        await changes(FrozenClickHouse(), log).merge(hex64(1), [hex64(2)], by="ann")
    assert log.records[hex64(2)].version == 1


async def test_a_fresh_merge_is_undone_while_the_writer_is_behind() -> None:
    log = Log()
    late = changes(ClickHouse(log, late=True), log, answer_seconds=0.03)
    await late.merge(hex64(1), [hex64(2)], by="ann")
    assert (await late.unmerge(hex64(1), [hex64(2)], by="ann")).fingerprints == [hex64(1)]
    with pytest.raises(BadChange, match="0002 is not merged into this issue"):
        await late.unmerge(hex64(1), [hex64(2)], by="ann")


async def test_an_issue_that_only_the_processors_know_can_be_changed() -> None:
    log = Log()
    late = changes(ClickHouse(log, StorageUnavailable("behind")), log)
    log.records[hex64(3)] = a_record(3)
    assert (await late.update(hex64(3), Update(status="ignored"), by="ann")).status == "ignored"


async def test_an_issue_that_is_named_a_hundred_times_is_looked_up_once() -> None:
    log = Log()
    reader = ClickHouse(log)
    await changes(reader, log).update_many(PROJECT, [hex64(1)] * 100, Update(status="resolved"), by="admin")
    assert reader.project_reads == 1


async def test_an_unknown_issue_is_not_found_and_gets_no_command() -> None:
    log = Log()
    with pytest.raises(NotFound):
        await changes(ClickHouse(log), log).comment(hex64(9), "x", by="ann")


@pytest.mark.usefixtures("impatient")
async def test_without_any_answer_a_change_is_unavailable_and_not_unknown() -> None:
    log = Log()
    log.answers = False
    with pytest.raises(ChangesUnavailable):
        await changes(FrozenClickHouse(), log).update(hex64(9), Update(status="open"), by="ann")


async def test_a_snooze_that_has_ended_reads_as_open_in_a_record_as_in_its_row() -> None:
    asleep = replace(a_record(1), status="ignored", ignore_until={"time": "2020-01-01T00:00:00.000Z"})
    assert issue_of(asleep, NOW_MS).status == "open"


@pytest.mark.parametrize(("events", "users"), [(12, 5), (3, 3), (12, 12)])
def test_the_totals_are_never_less_than_the_counts_of_a_range(events: int, users: int) -> None:
    shown = to_issue(row_of(a_record(1), NOW_MS), RangeCounts(events, users))
    assert (shown.events, shown.users) == (events, users)
    assert shown.total_events >= shown.events
    assert shown.total_users >= shown.users
