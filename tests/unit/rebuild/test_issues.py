"""Issues from ClickHouse: exact for stored events; counts of expired events don't decrease."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from processors.aggregator.issue_fold import Fold
from processors.aggregator.totals import Users
from rebuild.rebuilt_issues import Covered, Sources, Unread, rebuilt
from rebuild.rebuilt_merges import Pair
from schemas.ids import hex64, issue_id
from schemas.issues import IssueRecord, encode_json
from schemas.times import iso
from storage.maintain.rebuild_queries import StoredChange, StoredCounts, StoredIssue
from tests.unit.processors.aggregator.test_fold import increment
from tests.unit.processors.made import HOUR, START, event_id

PROJECT = 1
COVERED = Covered({0: 7, 1: -1}, {0: 3, 1: 4}, Unread())
AT = iso(START)
COMMAND = "0199ee65-f275-750f-87fc-3665cc81dda7"


def counted(
    fingerprint: int = 2, events: int = 5, ms: int = START, users: tuple[int, ...] = ()
) -> StoredCounts:
    return StoredCounts(
        project=PROJECT, fingerprint=fingerprint, events=events, first_ms=ms, last_ms=ms + 9, received_ms=ms + 9,
        first_release="a@1+1", last_event=event_id(events), last_release="a@2+1", error_type="E", message="stored",
        platform="ios", version="v1", rule="stack", releases={"a@1+1": events - 1, "a@2+1": 1},
        environments={"prod": events},
        platforms={"ios": events}, hours={ms // HOUR: events}, users=list(users),
    )  # fmt: skip


def stored_row(
    fingerprint: int = 2, *members: int, events: int = 5, ms: int = START, **more: Any
) -> StoredIssue:
    given: dict[str, Any] = {
        "project": PROJECT, "issue": issue_id(PROJECT, fingerprint), "fingerprints": [fingerprint, *members],
        "error_type": "E", "message": "shown", "culprit": "f", "status": "open", "regressed": False, "first_ms": ms,
        "last_ms": ms + 9, "events": events, "users": 0, "first_release": "a@1+1", "last_release": "a@2+1",
        "environments": ["prod"], "releases": ["a@1+1", "a@2+1"], "assignee": "", "resolved_in": "", "ignore_until": "",
        "last_event": event_id(events), "grouping_version": "v1", "grouping_rule": "stack", "grouping_parts": ["p"],
        "merged_into": 0, "version": 3, "escalated_ms": START + 5,
    }  # fmt: skip
    return StoredIssue(**(given | more))


SOURCES = Sources(
    since=lambda project, fingerprints, at_ms: (2, [11, 12]),  # noqa: ARG005
    releases=lambda project, at_ms: ["a@1+1", "odd"],  # noqa: ARG005
    described=lambda project, event: ("place", ("part",)),  # noqa: ARG005
)


def one(counts: list[StoredCounts], rows: list[StoredIssue], *changes: StoredChange) -> IssueRecord:
    issue = issue_id(PROJECT, 2)
    records = rebuilt(counts, rows, {issue: list(changes)}, COVERED, SOURCES, AT).records
    return next(record for record in records if record.id == hex64(issue))


def test_counts_are_those_of_the_stored_events_whatever_the_row_says() -> None:
    for row in ([], [stored_row(events=1)], [stored_row(events=9)]):
        record = one([counted(events=5, users=(1, 2))], row)
        assert (record.events, record.users, record.releases) == (5, 2, {"a@1+1": 4, "a@2+1": 1})


def test_a_row_describes_its_newest_event_unless_a_newer_one_is_stored() -> None:
    assert one([counted()], [stored_row()]).message == "shown"
    newer = one([counted(events=6)], [stored_row(events=5)])
    assert (newer.message, newer.culprit, newer.grouping_parts) == ("stored", "place", ("part",))


def test_a_row_without_an_event_describes_none_whatever_its_times() -> None:
    for ms in (START - HOUR, START + HOUR):
        record = one([counted()], [stored_row(events=0, ms=ms, message="", last_event=bytes(16))])
        assert (record.message, record.first_seen_ms) == ("stored", START)


def test_increments_that_are_in_are_dropped_and_later_ones_are_counted() -> None:
    record = one([counted()], [])
    assert record.positions == {0: 7}
    fold = Fold.restore(encode_json(record))
    assert not fold.add_increment(0, 7, increment())
    assert fold.add_increment(0, 8, increment())
    assert fold.add_increment(1, 0, increment())
    assert fold.record().events == 7


@given(
    st.integers(1, 50), st.integers(1, 50), st.integers(0, 300), st.sets(st.integers(1, 1 << 60), max_size=40)
)
def test_counts_of_expired_events_never_decrease(
    before: int, events: int, users: int, known: set[int]
) -> None:
    row = stored_row(events=before, ms=START - 100 * HOUR, users=users)
    record = one([counted(events=events, users=tuple(known))], [row])
    assert record.events == max(before, events)
    assert record.first_seen_ms == row.first_ms
    assert record.users >= min(users, 100)
    assert Users(record.users_sketch).count == record.users
    assert record.version > row.version


def test_an_issue_counts_its_erased_event_though_its_row_lacks_the_newest_of_its_part() -> None:
    rows = [stored_row(2, 3, events=3), stored_row(3, events=2, merged_into=issue_id(PROJECT, 2))]
    records = rebuilt([counted(3, 3)], rows, {}, COVERED, SOURCES, AT, {(PROJECT, 2): 1}).records
    assert {record.id: record.events for record in records} == {
        hex64(issue_id(PROJECT, 2)): 4,
        hex64(issue_id(PROJECT, 3)): 3,
    }


def test_an_issue_whose_events_have_all_expired_stays_as_it_was() -> None:
    record = one([], [stored_row(events=8, users=3, assignee="ann", status="resolved")])
    assert (record.events, record.users, record.assignee, record.status) == (8, 3, "ann", "resolved")


def test_a_merged_issue_keeps_no_text_that_may_be_of_its_part() -> None:
    whole, part = stored_row(2, 3, events=12), stored_row(3, events=7, merged_into=issue_id(PROJECT, 2))
    named = replace(part, last_event=whole.last_event)
    for counts, row in (([counted(3, 7)], part), ([], named)):
        record = one(counts, [whole, row])
        home = record.life.home or record
        assert (home.message, home.last_event, home.error_type) == ("", "", "E")
    kept = one([], [whole, part])
    assert (kept.life.home or kept).message == "shown"


def test_of_an_issues_rows_on_several_servers_the_newest_counts() -> None:
    rows = [stored_row(version=3), stored_row(version=8, assignee="ann"), stored_row(version=5)]
    record = one([counted()], rows)
    assert (record.version, record.assignee) == (9, "ann")


def test_changes_of_later_versions_than_the_rows_are_made_in_their_order_whatever_their_times() -> None:
    issue = hex64(issue_id(PROJECT, 2))
    changes = [
        StoredChange(START + 9, f"{issue}-{COMMAND}-resolved", "resolved", {"resolvedIn": "a@1+1"}, 3),
        StoredChange(START, f"{issue}-0-5-regressed", "regressed", {}, 4),
        StoredChange(START + 2, f"{issue}-{COMMAND[:-1]}x-assigned", "assigned", {"assignee": "bob"}, 5),
    ]
    assert one([counted()], [stored_row(status="ignored", version=5)], *changes).status == "ignored"
    for row in ([], [stored_row(status="ignored", version=2)], [stored_row(status="resolved", version=3)]):
        behind = one([counted()], row, *changes)
        assert (behind.status, behind.regressed, behind.assignee) == ("open", True, "bob")
        assert behind.life.commands == (COMMAND, f"{COMMAND[:-1]}x")
        assert behind.version > 5


def test_a_fix_knows_the_releases_before_it_and_a_rest_those_since() -> None:
    fixed = one(
        [counted()],
        [stored_row(status="resolved", resolved_in="a@9+1")],
        StoredChange(START, "x", "resolved", {"resolvedIn": "a@9+1"}),
    )
    assert fixed.life.fix is not None
    assert (fixed.life.fix.boundaries, fixed.life.fix.older) == (("a@9+1",), ("odd",))
    until = json.dumps({"users": 5})
    resting = one(
        [counted()],
        [stored_row(status="ignored", ignore_until=until)],
        StoredChange(START, "x", "ignored", {}),
    )
    assert resting.life.ignored is not None
    assert (resting.life.ignored.events, Users(resting.life.ignored.users_sketch).count) == (2, 2)


def test_merged_issues_keep_their_own_counts_and_the_whole_shows_the_sum() -> None:
    whole, part = issue_id(PROJECT, 2), issue_id(PROJECT, 3)
    rows = [stored_row(2, 3, events=12), stored_row(3, events=7, merged_into=whole)]
    merging = StoredChange(
        START, f"{hex64(whole)}-{COMMAND}-merged-{hex64(part)}", "merged", {"fingerprints": [hex64(3)]}
    )
    records = {
        record.id: record
        for record in rebuilt(
            [counted(2, 5), counted(3, 7)], rows, {whole: [merging]}, COVERED, SOURCES, AT
        ).records
    }
    record, member = records[hex64(whole)], records[hex64(part)]
    assert (record.events, record.fingerprints) == (12, (hex64(2), hex64(3)))
    assert record.life.home is not None
    # The row may have the text of a member.
    assert (record.life.home.events, record.life.home.message) == (5, "stored")
    assert (member.events, member.merged_into, member.life.join) == (7, record.id, AT)
    fold = Fold.restore(encode_json(record))
    fold.add_increment(0, 8, replace_fingerprint(2))
    assert fold.record().events == 13


def test_a_merge_that_the_issue_which_is_merged_alone_knows_of_is_undone() -> None:
    whole, part = issue_id(PROJECT, 2), issue_id(PROJECT, 3)
    rows = [stored_row(2, events=5), stored_row(3, events=7, merged_into=whole)]
    new = rebuilt([counted(2, 5), counted(3, 7)], rows, {}, COVERED, SOURCES, AT)
    records = {record.id: record for record in new.records}
    assert new.undone == [Pair(hex64(whole), hex64(part))]
    assert [one.issue for one in new.activities] == [hex64(whole), hex64(part)]
    assert (records[hex64(whole)].events, records[hex64(whole)].fingerprints) == (5, (hex64(2),))
    assert (records[hex64(part)].events, records[hex64(part)].merged_into) == (7, None)


def replace_fingerprint(fingerprint: int) -> Any:
    return replace(increment(), fingerprint=fingerprint)
