"""Records of issues as they are read: ended rest, merged issues and similar ones."""

import time
from collections.abc import AsyncIterator, Sequence

import pytest

from grouping.similarity import MAX_CANDIDATES
from query.event_view import EventView
from schemas.ids import hex64, issue_id, uuid7
from schemas.issues import IssueRecord
from schemas.times import iso
from storage.client import Client
from storage.read.issues.issue_calls import GetIssue, GetIssueVersions
from storage.read.issues.issue_list import ListIssues
from storage.read.issues.similar import ListSimilarIssues
from storage.read.reader import Reader
from storage.tables.record_rows import ISSUES, issue_row, table
from tests.integration.storage.read.world import Happened, insert_events


@pytest.fixture
async def reader(database_url: str) -> AsyncIterator[Reader]:
    opened = Reader.open([database_url])
    yield opened
    await opened.close()


def record(project: int, fingerprint: int, parts: Sequence[str] = (), **fields: object) -> IssueRecord:
    now = time.time_ns() // 1_000_000
    return IssueRecord(
        id=hex64(issue_id(project, fingerprint)),
        project_id=str(project),
        fingerprints=(hex64(fingerprint),),
        error_type="E",
        message="m",
        culprit="f",
        first_seen_ms=now,
        last_seen_ms=now,
        grouping_parts=tuple(parts),
        version=1,
        **fields,  # type: ignore[arg-type]
    )


def insert(database: Client, *records: IssueRecord) -> None:
    """The records, and an event of each."""
    events = [
        Happened(
            uuid7(one.last_seen_ms),
            int(one.fingerprints[0], 16),
            b"{}",
            EventView(timestamp=one.last_seen_ms),
        )
        for one in records
    ]
    insert_events(database, int(records[0].project_id), events)
    database.insert_arrow("issues", table(ISSUES, [issue_row(one) for one in records]))


async def test_rest_until_a_time_that_has_passed_reads_as_open_everywhere(
    reader: Reader, database: Client, project: int
) -> None:
    now = time.time_ns() // 1_000_000
    ended = record(project, 1, status="ignored", ignore_until={"time": iso(now - 1000)})
    ongoing = record(project, 2, status="ignored", ignore_until={"time": iso(now + 3_600_000)})
    others = [
        record(project, 3, status="ignored"),
        record(project, 4, status="ignored", ignore_until={"events": 5}),
    ]
    insert(database, ended, ongoing, *others)
    assert (await reader.read(GetIssue(ended.id))).status == "open"
    for query, expected in (
        ("is:open", {ended.id}),
        ("is:ignored", {ongoing.id, *(one.id for one in others)}),
    ):
        assert {one.id for one in (await reader.read(ListIssues(project, query))).issues} == expected


async def test_the_version_that_is_read_tells_of_a_merge(
    reader: Reader, database: Client, project: int
) -> None:
    insert(database, record(project, 1), record(project, 2, merged_into=hex64(issue_id(project, 1))))
    ids = [hex64(issue_id(project, fingerprint)) for fingerprint in (1, 2, 3)]
    shown = await reader.read(GetIssueVersions(project, ids))
    assert set(shown) == set(ids[:2])
    assert [shown[one].merged_into for one in ids[:2]] == [None, ids[0]]
    assert [one.id for one in (await reader.read(ListIssues(project))).issues] == ids[:1]


async def test_issues_that_share_rare_parts_are_more_similar_than_those_that_share_common_ones(
    reader: Reader, database: Client, project: int
) -> None:
    common = [record(project, 100 + n, ["TypeError", f"other {n}", f"more {n}"]) for n in range(20)]
    target = record(project, 1, ["TypeError", "null.x", "cart.js pay"])
    similar = record(project, 2, ["TypeError", "null.x", "cart.js pay", "shop.js buy"])
    half = record(project, 3, ["RangeError", "cart.js pay"])
    merged = record(project, 4, ["TypeError", "null.x", "cart.js pay"], merged_into=target.id)
    insert(database, target, similar, half, merged, *common)
    found = (await reader.read(ListSimilarIssues(target.id))).similar
    assert [one.id for one in found[:2]] == [similar.id, half.id]
    assert merged.id not in {one.id for one in found}
    assert found[0].shared == ["TypeError", "null.x", "cart.js pay"]
    assert found[0].reason == (
        "3 of 3 parts are equal: TypeError, null.x, cart.js pay; only there: shop.js buy"
    )
    assert all(one.share < found[1].share for one in found[2:])
    assert len((await reader.read(ListSimilarIssues(target.id, limit=1))).similar) == 1


async def test_the_candidates_are_those_that_share_rare_parts(
    reader: Reader, database: Client, project: int
) -> None:
    target = record(project, 1, ["TypeError", "null.x"])
    rare = record(project, 2, ["RangeError", "null.x"])
    common = [record(project, 100 + n, ["TypeError", f"other {n}"]) for n in range(MAX_CANDIDATES + 10)]
    insert(database, target, rare, *common)
    (found,) = (await reader.read(ListSimilarIssues(target.id))).similar
    assert found.id == rare.id
    assert found.reason == "1 of 2 parts are equal: null.x; only here: TypeError; only there: RangeError"


async def test_many_long_parts_are_told_in_short(reader: Reader, database: Client, project: int) -> None:
    parts = [f"{n} {'x' * 300}" for n in range(5)]
    insert(database, record(project, 1, parts), record(project, 2, parts))
    (found,) = (await reader.read(ListSimilarIssues(hex64(issue_id(project, 1))))).similar
    assert found.shared == parts
    listed = ", ".join(part[:100] for part in parts[:3])
    assert found.reason == f"5 of 5 parts are equal: {listed} and 2 more"


async def test_an_issue_without_parts_is_like_none(reader: Reader, database: Client, project: int) -> None:
    insert(database, record(project, 1), record(project, 2))
    assert (await reader.read(ListSimilarIssues(hex64(issue_id(project, 1))))).similar == []
