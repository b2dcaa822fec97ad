import re
from html import unescape

import pytest
from msgspec.structs import replace

from control.project_edits import ProjectChanges, create, update
from dashboard.view.filters import field_query, tag_query
from schemas.health import Part
from schemas.ids import hex64, issue_id
from schemas.projects import DEFAULT_RETENTION_DAYS
from schemas.times import DAY_MS
from storage.read.reader import PING
from tests.eventually import eventually
from tests.integration.dashboard.store import WatchedReader
from tests.integration.dashboard.stored_site import StoredSite
from tests.unit.dashboard.sample import EXAMPLES, HOSTILE, NASTY, SHOWCASE, issue_of
from tests.unit.dashboard.site import NOW, SETTINGS, running_site

ISSUE = f"/issues/{issue_of(SHOWCASE)}"


@pytest.fixture
async def signed(sample_stored: int, site: StoredSite) -> StoredSite:
    await site.sign_in()
    return site


async def get(site: StoredSite, path: str, status: int = 200) -> str:
    answer = await site.client.get(path)
    assert answer.status == status
    assert answer.content_type == "text/html"
    return await answer.text()


async def test_projects_are_found_by_name_with_their_figures(signed: StoredSite) -> None:
    listed = f'href="/projects/{signed.project.id}/issues"'
    growing = signed.store.records[issue_of(SHOWCASE)]
    signed.store.put([replace(growing, version=growing.version + 1, escalated_ms=NOW - 1)])
    page = await get(signed, "/projects")
    assert listed in page.partition("<main")[2]
    assert f'href="/projects/{signed.project.id}/issues?query=is:escalating">1<' in page
    shown = await get(signed, f"/projects/{signed.project.id}/issues?query=is:escalating")
    assert set(re.findall(r"/issues/([0-9a-f]{16})", shown)) == {growing.id}
    new = re.search(rf'href="/projects/{signed.project.id}/issues\?query=is:new">(\d+)<', page)
    assert new is not None
    shown = await get(signed, f"/projects/{signed.project.id}/issues?query=is:new")
    assert f"of {new[1]}<" in shown
    assert (
        listed
        in (await get(signed, f"/projects?name={signed.project.name[1:].upper()}")).partition("<main")[2]
    )
    assert "No project has this text" in await get(signed, "/projects?name=nothing")
    await get(signed, "/projects?page=0", 400)


async def test_projects_with_new_issues_come_first(signed: StoredSite) -> None:
    quiet = await signed.projects.write(create("a quiet one", now_ms=NOW))
    listed = (await get(signed, "/projects")).partition("<main")[2]
    assert re.findall(r'data-entry href="/projects/(\d+)/', listed) == [signed.project.id, quiet.id]


async def test_empty_project_shows_a_command_that_carries_its_token(site: StoredSite) -> None:
    await site.sign_in()
    page = await get(site, f"/projects/{site.project.id}/issues")
    assert site.project.tokens[0].token in page
    assert "curl http://127.0.0.1:8080/v1/events" in page


async def test_list_pages_through_every_issue_once(signed: StoredSite) -> None:
    seen: list[str] = []
    positions: list[tuple[str, str, str]] = []
    path = f"/projects/{signed.project.id}/issues?sort=events"
    while True:
        page = await get(signed, path)
        listed = re.findall(r'href="/issues/([0-9a-f]{16})"', page)
        assert listed
        seen += listed
        positions += re.findall(r"(\d+)–(\d+) of (\d+)", page)
        more = re.search(r'rel="next" href="([^"]+)"', page)
        if more is None:
            break
        path = f"/projects/{signed.project.id}/issues" + more[1].replace("&amp;", "&")
    assert len(seen) == len(set(seen))
    assert issue_of(SHOWCASE) in seen
    ends = [*range(25, len(seen), 25), len(seen)]
    assert positions == [(str(max(1, (end - 1) // 25 * 25 + 1)), str(end), str(len(seen))) for end in ends]


async def test_list_begins_with_urgent_issues_and_calls_few_issues_new(signed: StoredSite) -> None:
    """The sample's issues of today are most of its page: the badge would tell none of them from the others."""
    page = await get(signed, f"/projects/{signed.project.id}/issues")
    assert re.findall(r'href="/issues/([0-9a-f]{16})"', page)[0] == issue_of(SHOWCASE)
    assert "badge new" not in page
    # One scale: a single event is a low bar, compared with the many of the first row.
    heights = re.findall(r'<rect class="bar"[^>]+ height="([\d.]+)"', page.partition("<tbody")[2])
    assert (max(map(float, heights)), float(heights[-1])) == (28.0, 2.8)


async def test_an_issue_and_its_events_take_few_statements(signed: StoredSite) -> None:
    """ClickHouse plans each for several ms, however little it reads."""
    page = await get(signed, ISSUE)
    for rel in ("prev", "next", ""):
        # What pages show besides their subject was read by the first one.
        signed.reader.statements.clear()
        page = await get(signed, re.findall(rf'rel="{rel}" href="([^"]+)"', page)[0] if rel else ISSUE)
        of_page = [statement for statement in signed.reader.statements if statement != PING.text]
        assert len(of_page) <= 9, of_page


async def test_charts_mark_the_first_events_of_releases(signed: StoredSite) -> None:
    project = f"/projects/{signed.project.id}"
    releases = re.findall(r"<bdi>([^<]+@[^<]+)</bdi></a>", await get(signed, f"{project}/releases"))
    assert releases
    for path in (f"{project}/issues?range=30d&state=all", f"{project}/outcomes?range=30d", ISSUE):
        page = await get(signed, path)
        marked = re.findall(r"<li><bdi>[^<:]+(?::\d\d)?: ([^<]+) first seen</bdi></li>", page)
        assert marked
        assert {one for names in marked for one in names.split(", ")} <= set(releases)
        assert page.count('class="mark release"') == page.count(" first seen</bdi></li>")


async def test_outcomes_show_an_example_of_each_reason(signed: StoredSite) -> None:
    page = await get(signed, f"/projects/{signed.project.id}/outcomes?range=30d")
    for example in EXAMPLES.values():
        assert re.search(rf"<bdi>{re.escape(example)}</bdi> · <time ", page)


async def test_a_project_without_refusals_has_no_tables_of_them(signed: StoredSite) -> None:
    page = await get(
        signed, f"/projects/{signed.project.id}/outcomes?start=2020-01-01T00:00&end=2020-01-02T00:00"
    )
    assert "Why events were refused" not in page


async def test_filters_of_the_list_work_together(signed: StoredSite) -> None:
    query = "query=feature%3Acheckout+OR+timeout&environment=prod&state=regressed&range=7d"
    page = await get(signed, f"/projects/{signed.project.id}/issues?{query}")
    assert re.findall(r'href="/issues/([0-9a-f]{16})\?', page) == [issue_of(SHOWCASE)]


async def test_query_that_does_not_parse_is_explained_and_kept(signed: StoredSite) -> None:
    page = await get(signed, f"/projects/{signed.project.id}/issues?query=a%3A%28", 400)
    assert "Expected at the mark: a value" in page
    assert "<mark><bdi>(</bdi></mark>" in page
    assert 'value="a:("' in page


async def test_own_time_range_limits_the_list(signed: StoredSite) -> None:
    page = await get(
        signed, f"/projects/{signed.project.id}/issues?start=2020-01-01T00:00&end=2020-01-02T00:00"
    )
    assert "No open issues" in page
    await get(signed, f"/projects/{signed.project.id}/issues?start=yesterday", 400)


async def test_issue_shows_its_latest_event_and_leads_to_the_one_before(signed: StoredSite) -> None:
    page = await get(signed, ISSUE)
    assert "CheckoutError" in page
    assert "Caused by" in page
    previous = re.search(r'rel="prev" href="([^"]+)"', page)
    assert previous is not None
    before = await get(signed, previous[1])
    assert 'rel="next"' in before


async def test_an_issues_figures_follow_the_query_and_its_chart_marks_only_its_own_releases(
    signed: StoredSite,
) -> None:
    page = await get(signed, f"{ISSUE}?query=environment:staging")
    assert "first seen</bdi></li>" in page
    [matching] = re.findall(r"<p>(\d+) events of this issue match", page)
    assert f"Matching events</dt><dd>{matching}<small>of 90 in total</small>" in page
    marked = re.findall(r"<li><bdi>[^<:]+(?::\d\d)?: ([^<]+) first seen</bdi></li>", page)
    own = {"storefront-web@3.5.1+7012", "storefront-web@3.5.0+6972"}
    assert {one for names in marked for one in names.split(", ")} <= own
    assert "opened" in page
    assert "<strong>Opened</strong>" not in page


async def test_every_link_of_an_event_of_any_text_leads_somewhere(signed: StoredSite) -> None:
    """Tags with a null character, control characters, quotation marks."""
    project = f"/projects/{signed.project.id}"
    hostile = f"/issues/{issue_of(HOSTILE)}"
    paths = [hostile, f"{hostile}/events", f"{project}/issues?state=all", f"{project}/releases"]
    links = {link for path in paths for link in re.findall(r'href="(/[^"#]+)', await get(signed, path))}
    assert any("%00" in link for link in links)
    answers = {link: (await signed.client.get(unescape(link))).status for link in sorted(links)}
    assert {link: status for link, status in answers.items() if status != 200} == {}


async def test_a_query_with_a_null_character_finds_its_event(signed: StoredSite) -> None:
    for query in (tag_query(NASTY[:60], NASTY), field_query("release", NASTY), f"message:*{chr(0)}*"):
        found = await signed.api("GET", f"/issues/{issue_of(HOSTILE)}/events", params={"query": query})
        assert (found[0], len(found[1]["events"])) == (200, 1)
    status, body = await signed.api(
        "GET", f"/issues/{issue_of(HOSTILE)}/events", params={"query": chr(0) * 3}
    )
    assert (status, body["events"]) == (200, [])


@pytest.mark.parametrize(
    ("days", "heading"), [(0, "Not stored yet"), (DEFAULT_RETENTION_DAYS + 1, "All events have expired")]
)
async def test_an_issue_without_events_says_whether_they_are_awaited_or_expired(
    signed: StoredSite, days: int, heading: str
) -> None:
    fingerprint = 1_000_000 + days
    name = hex64(issue_id(int(signed.project.id), fingerprint))
    known = signed.store.records[issue_of(SHOWCASE)]
    seen = replace(known, id=name, fingerprints=(hex64(fingerprint),), last_seen_ms=NOW - days * DAY_MS)
    signed.store.put([seen])
    page = await (await signed.client.get(f"/issues/{name}")).text()
    assert re.findall(r'<div class="card empty"[^>]*><h2>([^<]+)', page) == [heading]


async def test_copied_links_have_the_configured_address_not_the_one_of_the_request(
    signed: StoredSite,
) -> None:
    settings = replace(SETTINGS, dashboard_url="https://svc.example.com/")
    reader, number = WatchedReader(signed.store.url, NOW), int(signed.project.id)
    async with running_site(reader, number=number, settings=settings) as site:
        await site.sign_in()
        page = await (await site.client.get(ISSUE, headers={"Host": "127.0.0.1:1"})).text()
    assert f"\nhttps://svc.example.com{ISSUE} · " in page
    assert "127.0.0.1:1/" not in page


async def test_unknown_things_are_pages_too(signed: StoredSite) -> None:
    for path in (
        "/nothing",
        "/projects/1/issues",
        "/projects/x/settings",
        "/issues/zz",
        "/issues/zz/snooze",
        "/issues/00000000000000ff/snooze",
        f"{ISSUE}/events/zz",
    ):
        page = await get(signed, path, 404)
        assert "Not found" in page
        # A message's link may be followed before its issue is stored.
        assert ("data-pending" in page) == path.startswith("/issues/")
    assert 'aria-label="Project"' in await get(signed, f"/projects/{signed.project.id}/nothing", 404)
    assert (
        "Method not allowed"
        in await (await signed.client.post(ISSUE, data={"csrf": await signed.csrf()})).text()
    )


async def test_frames_and_releases_link_to_the_source(signed: StoredSite) -> None:
    outward = re.compile(r'<a href="https://git.example/([^"]*)" rel="noopener noreferrer">(.+?)</a>')
    releases = f"/projects/{signed.project.id}/releases"
    assert not outward.search(await get(signed, ISSUE) + await get(signed, releases))
    template = ProjectChanges(link_template="https://git.example/{version}/{file}#L{line}")
    await signed.projects.edit(signed.project.number, lambda old: update(old, template))
    links = outward.findall(await get(signed, ISSUE))
    frames = [(link.partition("/")[2].partition("#")[0], text) for link, text in links if "#L" in link]
    assert frames
    assert all(text == "source" or file in unescape(text) for file, text in frames)
    assert len(links) == len(frames) + 2
    assert {text for _, text in outward.findall(await get(signed, releases))} == {"source"}


async def test_every_answer_forbids_foreign_content(signed: StoredSite) -> None:
    for path in (ISSUE, "/nothing", "/api/v1/projects", "/api/v1/nothing", "/sign-in", "/static/app.css"):
        answer = await signed.client.get(path, allow_redirects=False)
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Server"] == "svc"
    assert (await signed.client.get(ISSUE)).headers["Cache-Control"] == "no-store"
    kept = await signed.client.get("/static/app.css?v=1")
    assert "immutable" in kept.headers["Cache-Control"]


async def test_projects_of_one_name_differ_by_their_ids(site: StoredSite) -> None:
    await site.sign_in()
    path = f"/projects/{site.project.id}/settings"
    assert f'<span class="hint">{site.project.id}</span>' not in await get(site, path)
    other = await site.projects.write(create(site.project.name, now_ms=NOW))
    page = await get(site, path)
    for project in (site.project, other):
        assert f'<bdi>shop</bdi> <span class="hint">{project.id}</span></a></li>' in page


async def test_projects_that_are_not_loaded_are_reported(site: StoredSite) -> None:
    await site.sign_in()
    site.projects.is_loaded = False
    page = await get(site, "/", 503)
    assert "still loading" in page


async def test_without_a_broker_the_dashboard_is_ready_to_be_read_and_reports_it(site: StoredSite) -> None:
    site.projects.kafka = Part(ok=False, detail="no broker has answered for 9 s")

    async def is_ready() -> bool:
        return (await site.client.get("/readyz")).status == 200

    await eventually(is_ready)
    ready = await site.client.get("/readyz")
    assert (await ready.json())["parts"]["projects"] == {
        "ok": True,
        "detail": "no broker has answered for 9 s",
    }


async def test_probes_need_no_sign_in(site: StoredSite) -> None:
    assert await (await site.client.get("/healthz")).json() == {"alive": True}
    ready = await site.client.get("/readyz")
    assert set((await ready.json())["parts"]) == {"projects", "clickhouse"}
    metrics = await (await site.client.get("/metrics")).text()
    assert 'svc_dashboard_requests_total{method="GET",route="/healthz",status="200"} 1.0' in metrics
