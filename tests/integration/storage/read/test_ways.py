"""Answers that can be found in several ways are the same in each."""

import secrets
import uuid

import pytest
from msgspec.structs import replace

from schemas.ids import hex64, issue_id, uuid7
from schemas.read_api import Issue, Sort
from schemas.times import DAY_MS
from storage.client import Client
from storage.read.counts.tag_calls import CountIssueTags
from storage.read.events import event_detail
from storage.read.events.event_detail import GetIssueEvent, GetProjectEvent
from storage.read.issues import issue_list
from storage.read.issues.issue_list import ListIssues
from storage.read.query.ranges import resolve_range
from storage.read.reader import Reader
from tests.integration.storage.read.questions import pages
from tests.integration.storage.read.world import MERGED, NOW_MS, World, insert, insert_events, make
from tests.long_forms import first_quick


@pytest.fixture(scope="module")
def world(database: Client) -> World:
    made = make(secrets.randbelow(1 << 31) + 1, seed=2)
    insert(database, made)
    return made


async def whole_list(reader: Reader, world: World, query: str, sort: Sort, limit: int) -> list[Issue]:
    call = ListIssues(world.project, query, sort=sort, limit=limit)
    return [issue async for page in pages(reader, call) for issue in page.issues]


@pytest.mark.parametrize("sort", ["lastSeen", "firstSeen"])
@pytest.mark.parametrize("query", ["environment:staging", "release:shop@1.2.0+1 -environment:prod"])
async def test_a_page_that_is_not_among_the_newest_issues_is_found_among_all(
    reader: Reader, world: World, query: str, sort: Sort, monkeypatch: pytest.MonkeyPatch
) -> None:
    span = resolve_range(None, None, NOW_MS)
    expected = world.order(query, span.start, None, sort)
    whole = await whole_list(reader, world, query, sort, 2)
    assert [issue.id for issue in whole] == expected
    monkeypatch.setattr(issue_list, "MIN_CANDIDATES", 3)
    assert await whole_list(reader, world, query, sort, 1) == whole


@pytest.mark.parametrize("query", ["", "environment:staging"])
async def test_a_page_by_priority_is_the_same_from_few_candidates_as_from_all(
    reader: Reader, world: World, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = world.order(query, resolve_range(None, None, NOW_MS).start, None, "priority")
    for candidates in (1000, 12, 1):
        monkeypatch.setattr(issue_list, "MIN_CANDIDATES", candidates)
        assert [one.id for one in await whole_list(reader, world, query, "priority", 3)] == expected


async def test_an_event_is_found_whatever_its_id_says_of_its_time(
    reader: Reader, database: Client, world: World
) -> None:
    issue = hex64(issue_id(world.project, 5))
    some = next(event for event in world.events if event.fingerprint == 5)
    for number in (uuid.uuid4(), uuid7(NOW_MS - 300 * DAY_MS), uuid7(NOW_MS + 30 * DAY_MS)):
        insert_events(database, world.project, [replace(some, id=number)])
        detail = await reader.read(GetIssueEvent(issue, str(number)))
        assert detail.event is not None
        assert bytes(detail.event) == some.payload
        assert await reader.read(GetProjectEvent(world.project, str(number))) == detail


@pytest.mark.parametrize("gaps", first_quick([1, 0, 1_000_000]))
async def test_neighbours_are_found_near_and_far(
    reader: Reader, world: World, gaps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("MIN_REACH_MS", "NEAR_GAPS", "BUSY_GAPS"):
        monkeypatch.setattr(event_detail, name, gaps)
    number = issue_id(world.project, MERGED[0])
    events = sorted(
        world.by_issue(world.events)[number], key=lambda event: (event.view.timestamp, event.id.int)
    )
    ids: list[str | None] = [None, *(str(event.id) for event in events), None]
    for index in (1, 2, len(events) // 2, len(events) - 1, len(events)):
        found = await reader.read(GetIssueEvent(hex64(number), str(ids[index])))
        assert (found.previous_event_id, found.event_id, found.next_event_id) == tuple(
            ids[index - 1 : index + 2]
        )
        assert found == await reader.read(GetProjectEvent(world.project, str(ids[index])))


async def test_a_sum_over_days_has_as_many_events_as_their_facets(reader: Reader, world: World) -> None:
    issue = hex64(issue_id(world.project, MERGED[0]))
    day = NOW_MS // DAY_MS * DAY_MS - 4 * DAY_MS
    by_days = await reader.read(CountIssueTags(issue, start=day))
    by_events = await reader.read(CountIssueTags(issue, start=day, end=NOW_MS + DAY_MS))
    assert by_days.sample_events > 0
    assert by_days == by_events
