"""Pages of lists together: whole, in order, each row once, while rows change."""

import pytest
from msgspec.structs import replace

from schemas.ids import hex64, issue_id
from schemas.read_api import Sort
from schemas.times import DAY_MS, from_ms
from storage.client import Client
from storage.read.issues import issue_list
from storage.read.issues.issue_calls import ListActivity
from storage.read.issues.issue_list import ListIssues
from storage.read.reader import Reader
from tests.integration.storage.read.questions import RANGES, bounds, pages
from tests.integration.storage.read.world import NOW_MS, World, insert, insert_events, make
from tests.long_forms import first_quick


@pytest.mark.parametrize("sort", first_quick(["lastSeen", "priority", "firstSeen", "events", "users"]))
async def test_pages_together_are_the_whole_list_in_its_order(
    reader: Reader, world: World, sort: Sort
) -> None:
    for query in ("", "feature:cart"):
        for start, end in RANGES[:2]:
            ids: list[str] = []
            order = world.order(query, *bounds(start, end), sort)
            call = ListIssues(world.project, query, start=start, end=end, sort=sort, limit=7)
            async for page in pages(reader, call):
                assert (page.offset, page.total, page.total_is_bound) == (len(ids), len(order), False)
                ids += [issue.id for issue in page.issues]
            assert ids == order


@pytest.mark.parametrize(
    ("query", "name", "most"), [("", "MAX_COUNTED", 9), ("environment:prod", "MIN_CANDIDATES", 8)]
)
async def test_a_total_that_is_not_counted_to_its_end_is_a_bound_until_the_last_page(
    reader: Reader, world: World, monkeypatch: pytest.MonkeyPatch, query: str, name: str, most: int
) -> None:
    monkeypatch.setattr(issue_list, name, most)
    whole = len(world.order(query, *bounds(None, None), "lastSeen"))
    shown = 0
    async for page in pages(reader, ListIssues(world.project, query, limit=3)):
        if not shown:
            assert page.total_is_bound
            assert 3 < page.total <= most + 1 < whole
        assert page.offset == shown
        shown += len(page.issues)
        assert shown <= page.total
    assert (page.total, page.total_is_bound) == (whole, False)


@pytest.mark.parametrize(
    ("query", "sort"), [("", "lastSeen"), ("feature:[cart, checkout, search]", "events")]
)
async def test_no_issue_is_left_out_or_comes_twice_while_events_arrive(
    reader: Reader, database: Client, project: int, query: str, sort: Sort
) -> None:
    world = make(project, seed=2, many=150)
    insert(database, world)
    expected = set(world.order(query, *bounds(None, None), "events"))
    ids: list[str] = []
    async for page in pages(reader, ListIssues(project, query, sort=sort, limit=4)):
        ids += [issue.id for issue in page.issues]
        # One that was given and the last one of the list climb above everything.
        for issue in {ids[0], min(expected - set(ids), default=ids[0])}:
            climb(database, world, int(issue, 16))
    assert sorted(ids) == sorted(expected)


def climb(database: Client, world: World, issue: int) -> None:
    happened = world.by_issue(world.events)[issue][0]
    insert_events(database, world.project, [happened] * 100)
    database.command(
        "INSERT INTO issues SELECT * REPLACE (last_seen + INTERVAL 1 DAY AS last_seen, version + 1 AS version)"
        " FROM issues FINAL WHERE issue_id = {issue:UInt64}",
        parameters={"issue": issue},
    )


@pytest.mark.parametrize("sort", first_quick(["firstSeen", "lastSeen", "trend"]))
@pytest.mark.parametrize(
    "query", first_quick(["environment:[prod, staging]", "", "feature:[cart, checkout, search]"])
)
async def test_an_issue_that_was_given_and_sinks_does_not_come_again(
    reader: Reader, database: Client, project: int, query: str, sort: Sort
) -> None:
    world = make(project, seed=3, many=120)
    insert(database, world)
    expected = world.order(query, *bounds(None, None), "events")
    ids: list[str] = []
    async for page in pages(reader, ListIssues(project, query, sort=sort, limit=4)):
        ids += [issue.id for issue in page.issues]
        # Whatever came again would come again for ever.
        assert len(ids) <= len(expected)
        sink(database, world, [int(issue.id, 16) for issue in page.issues])
    assert sorted(ids) == sorted(expected)


def sink(database: Client, world: World, issues: list[int]) -> None:
    """Late events, of the older half of the trend: the issues began earlier. An unmerge took their newest ones away."""
    lives = world.by_issue(world.events)
    late = [
        replace(lives[issue][0], view=replace(lives[issue][0].view, timestamp=NOW_MS - 13 * DAY_MS))
        for issue in issues
    ]
    insert_events(database, world.project, late * 100)
    database.command(
        "INSERT INTO issues SELECT * REPLACE (first_seen - INTERVAL 30 DAY AS first_seen,"
        " greatest(last_seen - INTERVAL 30 DAY, fromUnixTimestamp64Milli({least:Int64}, 'UTC')) AS last_seen,"
        " version + 1 AS version)"
        " FROM issues FINAL WHERE issue_id IN {issues:Array(UInt64)}",
        parameters={"issues": issues, "least": NOW_MS - 13 * DAY_MS},
    )


@pytest.mark.holds("contract 4 activity")
async def test_changes_of_merged_issues_page_as_one_and_are_apart_again_after_an_unmerge(
    reader: Reader, database: Client, project: int
) -> None:
    whole, part = issue_id(project, 1), issue_id(project, 2)
    for at, issue in enumerate((whole, part, part, whole, part)):
        database.insert(
            "issue_activity",
            [[project, issue, from_ms(NOW_MS + at // 2), f"c{at}", "commented", "ann", "{}"]],
            column_names=["project_id", "issue_id", "at", "id", "kind", "by", "data"],
        )

    def tell(version: int, rows: list[tuple[int, list[int], int]]) -> None:
        database.insert(
            "issues",
            [[project, *row, version] for row in rows],
            column_names=["project_id", "issue_id", "fingerprints", "merged_into", "version"],
        )

    async def read(issue: int) -> list[tuple[str, str]]:
        return [
            (change.id, change.issue_id)
            async for page in pages(reader, ListActivity(hex64(issue), limit=2))
            for change in page.activity
        ]

    one, other = hex64(whole), hex64(part)
    tell(1, [(whole, [1, 2], 0), (part, [2], whole)])
    together = [("c4", other), ("c3", one), ("c2", other), ("c1", other), ("c0", one)]
    assert await read(whole) == await read(part) == together
    tell(2, [(whole, [1], 0), (part, [2], 0)])
    assert await read(whole) == [("c3", one), ("c0", one)]
    assert await read(part) == [("c4", other), ("c2", other), ("c1", other)]


async def test_changes_of_one_instant_are_in_the_order_of_the_log(
    reader: Reader, database: Client, project: int
) -> None:
    issue = issue_id(project, 1)
    name = hex64(issue)
    oldest_first = [
        f"{name}-created",
        *(f"{name}-0-{offset}-seenInRelease-{n}" for offset, n in [(8, 1), (9, 2), (10, 1), (10, 10)]),
        *(f"{name}-{at}-usersReached" for at in ("1-12", "0-9", "0-20", "1-7")),
    ]
    reached = dict(zip(oldest_first[-4:], (20, 50, 100, 200), strict=True))
    database.insert(
        "issue_activity",
        [
            [
                project,
                issue,
                from_ms(NOW_MS),
                change,
                "usersReached",
                "",
                f'{{"users":{reached.get(change, 0)}}}',
            ]
            for change in oldest_first
        ],
        column_names=["project_id", "issue_id", "at", "id", "kind", "by", "data"],
    )
    database.insert(
        "issues",
        [[project, issue, [1], 1]],
        column_names=["project_id", "issue_id", "fingerprints", "version"],
    )
    found = [
        change.id async for page in pages(reader, ListActivity(name, limit=2)) for change in page.activity
    ]
    assert found == oldest_first[::-1]
