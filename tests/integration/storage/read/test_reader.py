"""Lists, issues and events against the same answer computed from a list of events."""

from contextlib import suppress

import pytest

from schemas.ids import hex64, issue_id
from schemas.read_api import Issue, IssuePart
from schemas.times import iso
from storage.client import Client
from storage.errors import NotFound, QueryTooExpensive, StorageUnavailable
from storage.read.events.event_calls import ListIssueEvents, ListProjectEvents, SampleEvents
from storage.read.events.event_detail import GetIssueEvent, GetProjectEvent
from storage.read.issues.issue_calls import FindProject, GetIssue, ListActivity, ListParts
from storage.read.issues.issue_list import ListIssues
from storage.read.query.question import question
from storage.read.query.ranges import resolve_range
from storage.read.reader import Reader
from tests.integration.storage.read.questions import QUERIES, RANGES, bounds, pages
from tests.integration.storage.read.world import (
    MERGED,
    NOW_MS,
    PART,
    World,
    distinct_users,
)


async def test_the_parts_of_a_merged_issue_have_the_texts_of_the_issues_that_they_were(
    reader: Reader, world: World
) -> None:
    unknown = hex64(999_999)
    parts = await reader.read(ListParts(world.project, [hex64(MERGED[1]), unknown]))
    assert parts == [IssuePart(hex64(MERGED[1]), *PART, events=0), IssuePart(unknown, "", "", "")]


@pytest.mark.parametrize("query", QUERIES)
async def test_issue_lists_have_the_issues_and_figures_of_their_events(
    reader: Reader, world: World, query: str
) -> None:
    for start, end in RANGES:
        first, last = bounds(start, end)
        page = await reader.read(ListIssues(world.project, query, start=start, end=end, limit=500))
        assert page.next_cursor is None
        assert [issue.id for issue in page.issues] == world.order(query, first, last, "lastSeen")
        found = world.by_issue(world.found(query, first, last))
        for issue in page.issues:
            number = int(issue.id, 16)
            events = found[number]
            assert (issue.events, issue.users) == (len(events), world.users(number, events))
        trends = world.trends(query, first, last)
        assert [issue.trend for issue in page.issues] == [trends[issue.id] for issue in page.issues]


@pytest.mark.parametrize("query", QUERIES)
async def test_an_issue_is_counted_by_the_querys_conditions_on_it_and_on_its_events(
    reader: Reader, world: World, query: str
) -> None:
    index = QUERIES.index(query)
    for turn, (start, end) in enumerate(RANGES[:2], index):
        found = world.by_issue(world.found(query, *bounds(start, end)))
        trends = world.trends(query, *bounds(start, end))
        # Each query asks for a quarter of the issues, the next query for the next quarter.
        for number in {issue_id(world.project, MERGED[0]), *sorted(world.issues)[turn % 4 :: 4]}:
            issue = await reader.read(GetIssue(hex64(number), query, start=start, end=end))
            events = found.get(number, [])
            assert (issue.events, issue.users) == (len(events), world.users(number, events))
            assert issue.trend == trends[issue.id]


async def test_an_issue_shows_its_lifetime_counts_and_those_of_the_range(
    reader: Reader, world: World
) -> None:
    number = issue_id(world.project, 0)
    life = world.issues[number]
    start, end = bounds(None, None)
    issue = await reader.read(GetIssue(hex64(number), "environment:prod"))
    events = world.by_issue(world.found("environment:prod", start, end))[number]
    assert issue == Issue(
        id=hex64(number),
        project_id=str(world.project),
        title="TypeError: Can't read größe of item 0 (100%)",
        error_type="TypeError",
        message="Can't read größe of item 0 (100%)",
        culprit="f",
        status=life.status,
        regressed=life.regressed,
        escalated_at=iso(life.escalated) if life.escalated else None,
        platform="javascript",
        first_seen=iso(life.first_seen),
        last_seen=iso(life.last_seen),
        events=len(events),
        users=distinct_users(events),
        total_events=life.events,
        total_users=life.users,
        first_release=life.first_release,
        last_release="shop@1.3.0+1",
        environments=["prod"],
        assignee=life.assignee or None,
        resolved_in=None,
        ignore_until={"events": 5} if life.status == "ignored" else None,
        fingerprints=[hex64(0)],
        trend=world.trends("environment:prod", start, end)[hex64(number)],
    )


@pytest.mark.holds("contract 4 merge")
async def test_merged_issues_read_as_one(reader: Reader, world: World) -> None:
    target, source = (hex64(issue_id(world.project, number)) for number in MERGED)
    issue = await reader.read(GetIssue(source))
    assert issue.id == target
    assert sorted(issue.fingerprints) == sorted(map(hex64, MERGED))
    assert issue == await reader.read(GetIssue(target))
    events = world.by_issue(world.found("", 0, None))[int(target, 16)]
    page = await reader.read(ListIssueEvents(target, limit=500))
    assert [event.id for event in page.events] == [str(event.id) for event in events]
    assert {event.issue_id for event in page.events} == {target}
    assert await reader.read(FindProject(source)) == world.project


@pytest.mark.parametrize("query", QUERIES)
async def test_event_lists_page_through_the_events_of_query_and_range(
    reader: Reader, world: World, query: str
) -> None:
    for start, end in RANGES[:3]:
        expected = [str(event.id) for event in world.found(query, *bounds(start, end))]
        call = ListProjectEvents(world.project, query, start=start, end=end, limit=400)
        ids = [event.id async for page in pages(reader, call) for event in page.events]
        assert ids == expected


async def test_a_listed_event_has_its_main_fields(reader: Reader, world: World) -> None:
    newest = world.found("", 0, None)[0]
    page = await reader.read(ListProjectEvents(world.project, limit=1))
    row = page.events[0]
    assert (row.id, row.time) == (str(newest.id), iso(newest.view.timestamp))
    assert row.received_at == iso(newest.view.timestamp + 500)
    assert row.issue_id == hex64(world.issue_of(newest.fingerprint))
    assert (row.error_type, row.message, row.tags) == (
        newest.view.type,
        newest.view.message,
        newest.view.tags,
    )
    assert (row.user, row.sdk, row.release) == (newest.view.user, newest.view.sdk, newest.view.release)


async def test_an_issue_can_be_walked_from_its_latest_event_to_its_oldest(
    reader: Reader, world: World
) -> None:
    for fingerprint in (20, MERGED[0]):
        issue = hex64(issue_id(world.project, fingerprint))
        events = world.by_issue(world.found("", 0, None))[int(issue, 16)]
        detail = await reader.read(GetIssueEvent(issue, "latest"))
        walked = []
        for number, expected in enumerate(events):
            assert detail.event is not None
            assert bytes(detail.event) == expected.payload
            assert detail.event_id == str(expected.id)
            assert detail.next_event_id == (str(events[number - 1].id) if number else None)
            assert (detail.issue_id, detail.sdk) == (issue, "browser/1")
            assert (detail.grouping.version, detail.grouping.rule, detail.grouping.parts) == (
                "v1",
                "stack",
                ["g" if expected.fingerprint == MERGED[1] else "f", "src"],
            )
            walked.append(detail)
            if detail.previous_event_id is not None:
                detail = await reader.read(GetIssueEvent(issue, detail.previous_event_id))
        assert len(walked) == len(events)
        assert walked[-1].previous_event_id is None
        assert await reader.read(GetIssueEvent(issue, "oldest")) == walked[-1]
        assert await reader.read(GetProjectEvent(world.project, walked[0].event_id)) == walked[0]


@pytest.mark.parametrize("query", ["feature:cart", "is:open feature:cart", "-has:user"])
async def test_a_walk_with_a_query_meets_the_events_that_match(
    reader: Reader, world: World, query: str
) -> None:
    issue = hex64(issue_id(world.project, 20))
    events = world.by_issue(world.found("", 0, None))[int(issue, 16)]
    matching = [event for event in world.found(query.removeprefix("is:open "), 0, None) if event in events]
    assert 0 < len(matching) < len(events)
    detail = await reader.read(GetIssueEvent(issue, "latest", query))
    for number, expected in enumerate(matching):
        assert detail.event_id == str(expected.id)
        assert detail.next_event_id == (str(matching[number - 1].id) if number else None)
        if detail.previous_event_id is not None:
            detail = await reader.read(GetIssueEvent(issue, detail.previous_event_id, query))
    assert detail.previous_event_id is None
    assert (await reader.read(GetIssueEvent(issue, "oldest", query))).event_id == str(matching[-1].id)
    # One that doesn't match is shown, with its matching neighbours.
    other = next(event for event in events if event not in matching)
    detail = await reader.read(GetIssueEvent(issue, str(other.id), query))
    before = [event for event in matching if event.view.timestamp < other.view.timestamp]
    assert detail.previous_event_id == (str(before[0].id) if before else None)
    with pytest.raises(NotFound):
        await reader.read(GetIssueEvent(issue, "latest", "feature:nowhere"))


async def test_a_sample_has_the_newest_events_whole(reader: Reader, world: World) -> None:
    expected = world.found("feature:cart", *bounds(None, None))[:40]
    samples = await reader.read(SampleEvents(world.project, "feature:cart", limit=40))
    assert [bytes(sample.event) for sample in samples] == [event.payload for event in expected]
    assert [sample.fingerprint for sample in samples] == [hex64(event.fingerprint) for event in expected]
    assert [sample.issue_id for sample in samples] == [
        hex64(world.issue_of(event.fingerprint)) for event in expected
    ]
    assert [sample.received_ms for sample in samples] == [event.view.timestamp + 500 for event in expected]


async def test_first_and_last_event_of_a_project(reader: Reader, world: World) -> None:
    events = world.found("", 0, None)
    assert (await reader.read(GetProjectEvent(world.project, "latest"))).event_id == str(events[0].id)
    assert (await reader.read(GetProjectEvent(world.project, "oldest"))).event_id == str(events[-1].id)


async def test_unknown_ids_are_not_found(reader: Reader, world: World) -> None:
    issue = hex64(issue_id(world.project, 0))
    other = next(event for event in world.events if event.fingerprint == 8)
    for asking in (
        reader.read(GetIssue("0" * 16)),
        reader.read(GetIssue("not an id")),
        reader.read(ListIssueEvents("0" * 16)),
        reader.read(GetIssueEvent(issue, str(other.id))),
        reader.read(GetIssueEvent(issue, "0199ee65-f275-750f-87fc-3665cc81dda7")),
        reader.read(GetIssueEvent(issue, "nonsense")),
        reader.read(GetProjectEvent(world.project, "0199ee65-f275-750f-87fc-3665cc81dda7")),
        reader.read(GetProjectEvent(world.project + 1, str(other.id))),
        reader.read(GetProjectEvent(world.project + 1, "latest")),
        reader.read(ListActivity("0" * 16)),
    ):
        with pytest.raises(NotFound):
            await asking


@pytest.mark.parametrize(("query", "index"), [("feature:cart", "by_tag"), ("user:u1", "by_user")])
async def test_filters_are_served_by_their_index(database: Client, query: str, index: str) -> None:
    prepared = question(1, query, resolve_range(None, None, NOW_MS), NOW_MS)
    statement = prepared.statement()
    plan = database.query(
        f"EXPLAIN indexes = 1 SELECT count() FROM events WHERE {statement.project} AND {statement.event}",
        parameters=statement.parameters.values,
    )
    assert f"Name: {index}" in {line.strip() for (line,) in plan.result_rows}


async def test_the_longest_queries_are_answered_or_refused(reader: Reader, world: World) -> None:
    for query in (
        " ".join(f"w{number}*" for number in range(200)),
        " OR ".join(f'a:"*b*c*{number}"' for number in range(200)),
        " OR ".join(f"(is:open a:{number})" for number in range(90)),
        "é" * 10_000,
        "(" * 24 + "a OR is:open" + ")" * 24,
    ):
        with suppress(QueryTooExpensive, StorageUnavailable):
            await reader.read(ListIssues(world.project, query))
