"""Several issues of the list are changed together."""

import re

import pytest

from dashboard import bulk_changes
from schemas.errors import ChangePending, ChangesUnavailable
from schemas.ids import hex64, issue_id
from tests.eventually import eventually
from tests.integration.dashboard.stored_site import StoredSite
from tests.unit.dashboard.sample import SHOWCASE, Sent, issue_of, showcase
from tests.unit.dashboard.site import NOW

pytestmark = pytest.mark.usefixtures("sample_stored")


async def post(site: StoredSite, change: str, issues: list[str], **more: str) -> tuple[int, str]:
    await site.sign_in()
    listed = f"/projects/{site.project.id}/issues"
    fields = [
        ("csrf", await site.csrf()),
        ("change", change),
        *(("issue", one) for one in issues),
        *more.items(),
    ]
    answer = await site.client.post(f"{listed}/change", data=fields, allow_redirects=False)
    return answer.status, answer.headers.get("Location", "")


TWO = [issue_of(number) for number in (1, 2)]


@pytest.mark.parametrize(
    ("change", "given"),
    [
        ("resolve", {"status": "resolved"}),
        ("ignore", {"status": "ignored"}),
        ("reopen", {"status": "open"}),
        ("assign", {"assignee": "bob"}),
    ],
)
async def test_the_pressed_button_changes_every_selected_issue(
    site: StoredSite, change: str, given: dict[str, str]
) -> None:
    status, location = await post(
        site, change, [*TWO, TWO[0]], assignee=" bob ", back="?query=a%26b&sort=events&evil=1"
    )
    assert (status, location) == (
        303,
        f"/projects/{site.project.id}/issues?query=a%26b&sort=events&done={change}&count=2"
        + ("" if change == "assign" else f"&was={TWO[0]}%2C{TWO[1]}"),
    )
    assert [made.issue for made in site.commands.made] == TWO
    assert all(made.data.items() >= given.items() for made in site.commands.made)


@pytest.mark.parametrize(
    ("where", "resolved_in", "words"),
    [
        ("", None, "2 issues resolved."),
        ("next", "next", "2 issues resolved in the next release."),
        ("in a@1+\u202e1", "a@1+\u202e1", "2 issues resolved in a@1+"),
    ],
)
async def test_several_issues_are_resolved_now_in_the_next_release_or_in_one_of_the_project(
    site: StoredSite, where: str, resolved_in: str | None, words: str
) -> None:
    status, location = await post(site, "resolve", TWO, where=where)
    assert status == 303
    assert [made.data["resolvedIn"] for made in site.commands.made] == [resolved_in] * 2
    html = await (await site.client.get(location)).text()
    assert words in html
    assert '<option value="in storefront-web@3.5.1+7012">' in html
    assert "\u202e" not in re.findall(r'role="status"><p>(.*?)</p>', html)[0]


@pytest.mark.parametrize("where", ["later", "in ", "in " + "a" * 201])
async def test_an_unknown_choice_next_to_resolve_changes_nothing(site: StoredSite, where: str) -> None:
    assert (await post(site, "resolve", TWO, where=where))[0] == 400
    assert site.commands.made == []


async def test_a_bulk_change_that_is_still_being_applied_leads_back_to_the_list(site: StoredSite) -> None:
    site.commands.failure = ChangePending("the change was not confirmed in time")
    status, location = await post(site, "resolve", TWO, back="?sort=events")
    listed = f"/projects/{site.project.id}/issues"
    assert (status, location) == (303, f"{listed}?sort=events&pending=resolve&count=2")
    html = await (await site.client.get(location)).text()
    assert "still being applied" in html
    assert "2 issues resolved" not in html


async def test_an_empty_assignee_removes_the_name(site: StoredSite) -> None:
    await post(site, "assign", TWO[:1], assignee="")
    assert site.commands.made[0].data == {"assignee": None}


async def test_merging_goes_into_the_issue_with_most_events(site: StoredSite) -> None:
    most = issue_of(SHOWCASE)
    await post(site, "merge", [*TWO, most])
    [made] = site.commands.made
    assert (made.issue, made.data) == (most, {"issues": TWO})


@pytest.mark.parametrize(("change", "issues"), [("resolve", []), ("merge", TWO[:1]), ("merge", [])])
async def test_with_too_few_selected_nothing_is_changed_and_the_list_says_so(
    site: StoredSite, change: str, issues: list[str]
) -> None:
    status, location = await post(site, change, issues)
    assert (status, site.commands.made) == (303, [])
    assert "Nothing was changed" in await (await site.client.get(location)).text()


@pytest.mark.parametrize(
    ("change", "issues"),
    [("explode", TWO), ("resolve", ["x"]), ("resolve", [f"{n:016x}" for n in range(101)])],
)
async def test_values_that_the_page_never_sends_are_refused(
    site: StoredSite, change: str, issues: list[str]
) -> None:
    assert (await post(site, change, issues))[0] == 400
    assert site.commands.made == []


async def test_an_issue_of_another_project_is_not_merged(site: StoredSite) -> None:
    other = site.project.number + 1
    site.store.add(other, [Sent(showcase(NOW), SHOWCASE, "test/1", NOW, ["Error"])])
    assert (await post(site, "merge", [TWO[0], hex64(issue_id(other, SHOWCASE))]))[0] == 400
    assert site.commands.made == []


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("?done=resolve&count=1", "1 issue resolved."),
        ("?done=merge&count=12", "12 issues merged into one."),
        ("?done=resolve&count=%3Cb%3E", None),
        ("?done=%3Cscript%3E&count=1", None),
    ],
)
async def test_the_list_shows_a_notice_of_the_change(
    site: StoredSite, address: str, words: str | None
) -> None:
    await site.sign_in()
    html = await (await site.client.get(f"/projects/{site.project.id}/issues{address}")).text()
    assert (words in html) if words else ('role="status"' not in html)


async def notice_of(site: StoredSite, location: str) -> str:
    """The notice of a change of many issues, once it is made."""

    async def made() -> str:
        html = await (await site.client.get(location)).text()
        [notice] = re.findall(r"<div[^>]+ data-made.*?</div>", html, re.DOTALL)
        return "" if "data-made=" in notice else notice

    return await eventually(made)


async def test_all_issues_that_match_are_changed_in_the_background_and_restored(
    site: StoredSite,
) -> None:
    before = dict(site.store.records)
    status, location = await post(site, "assign", [], all="yes", assignee="ann", back="?query=type:TypeError")
    assert status == 303
    notice = await notice_of(site, location)
    changed = [made.issue for made in site.commands.made]
    matching = [one.id for one in before.values() if one.error_type == "TypeError" and one.status == "open"]
    assert sorted(changed) == sorted(matching)
    assert len(changed) > 25
    assert f"{len(changed)} issues assigned." in notice
    [made] = re.findall(r'name="made" value="(\w+)"', notice)
    undone = (await post(site, "undo", [], made=made))[1]
    assert f"{len(changed)} issues restored." in await notice_of(site, undone)
    assert {site.store.records[issue].assignee for issue in changed} == {None}


@pytest.mark.parametrize(
    ("query", "words"),
    [("a:(", "0 issues assigned. Then it stopped: query: "), ("nothing", "0 issues assigned")],
)
async def test_a_change_of_all_that_match_nothing_or_a_wrong_query_says_so(
    site: StoredSite, query: str, words: str
) -> None:
    _, location = await post(site, "assign", [], all="yes", assignee="ann", back=f"?query={query}&state=all")
    listed = f"/projects/{site.project.id}/issues"
    assert words in await notice_of(site, f"{listed}?{location.partition('?')[2]}")
    assert site.commands.made == []


async def test_a_change_that_stops_says_how_far_it_came(
    site: StoredSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_changes, "MAX_ISSUES", 10)
    site.commands.failure = ChangesUnavailable("the processors did not answer in time")
    _, location = await post(site, "ignore", [], all="yes")
    assert "0 issues ignored. Then it stopped: the processors did not answer in time." in await notice_of(
        site, location
    )
