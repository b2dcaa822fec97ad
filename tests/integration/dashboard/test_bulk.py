"""Several issues of the list are changed together."""

import json
import re

import pytest

from schemas.changes import Update
from schemas.errors import ChangePending
from tests.memory.changes import Asked
from tests.unit.dashboard.sample import SHOWCASE, fill, showcase
from tests.unit.dashboard.site import NOW, Site


async def post(site: Site, change: str, issues: list[str], **more: str) -> tuple[int, str]:
    fill(site.reader, site.project.number, NOW)
    await site.sign_in()
    listed = f"/projects/{site.project.id}/issues"
    csrf = re.search(r'name="csrf" value="([^"]+)"', await (await site.client.get(listed)).text())
    assert csrf is not None
    fields = [("csrf", csrf[1]), ("change", change), *(("issue", one) for one in issues), *more.items()]
    answer = await site.client.post(f"{listed}/change", data=fields, allow_redirects=False)
    return answer.status, answer.headers.get("Location", "")


TWO = [f"{number:016x}" for number in (1, 2)]


@pytest.mark.parametrize(
    ("change", "given"),
    [
        ("resolve", Update(status="resolved")),
        ("ignore", Update(status="ignored")),
        ("reopen", Update(status="open")),
        ("assign", Update(assignee="bob")),
    ],
)
async def test_the_pressed_button_changes_every_selected_issue(
    site: Site, change: str, given: Update
) -> None:
    status, location = await post(
        site, change, [*TWO, TWO[0]], assignee=" bob ", back="?query=a%26b&sort=events&evil=1"
    )
    assert (status, location) == (
        303,
        f"/projects/{site.project.id}/issues?query=a%26b&sort=events&done={change}&count=2",
    )
    assert site.changes.asked == [Asked("update", issue, given, "admin", "") for issue in TWO]


async def test_a_bulk_change_that_is_still_being_applied_leads_back_to_the_list(site: Site) -> None:
    site.changes.failure = ChangePending("the change was not confirmed in time")
    status, location = await post(site, "resolve", TWO, back="?sort=events")
    listed = f"/projects/{site.project.id}/issues"
    assert (status, location) == (303, f"{listed}?sort=events&pending=resolve&count=2")
    html = await (await site.client.get(location)).text()
    assert "still being applied" in html
    assert "2 issues resolved" not in html


async def test_assigning_to_nobody_takes_the_name_away(site: Site) -> None:
    await post(site, "assign", TWO[:1], assignee="")
    assert site.changes.asked[0].given == Update(assignee=None)


async def test_merging_goes_into_the_issue_with_most_events(site: Site) -> None:
    most = f"{SHOWCASE:016x}"
    await post(site, "merge", [*TWO, most])
    assert site.changes.asked == [Asked("merge", most, tuple(TWO), "admin", "")]


@pytest.mark.parametrize(("change", "issues"), [("resolve", []), ("merge", TWO[:1]), ("merge", [])])
async def test_with_too_few_selected_nothing_is_changed_and_the_list_says_so(
    site: Site, change: str, issues: list[str]
) -> None:
    status, location = await post(site, change, issues)
    assert (status, site.changes.asked) == (303, [])
    assert "Nothing was changed" in await (await site.client.get(location)).text()


@pytest.mark.parametrize(
    ("change", "issues"),
    [("explode", TWO), ("resolve", ["x"]), ("resolve", [f"{n:016x}" for n in range(101)])],
)
async def test_what_the_page_never_sends_is_refused(site: Site, change: str, issues: list[str]) -> None:
    assert (await post(site, change, issues))[0] == 400
    assert site.changes.asked == []


async def test_an_issue_of_another_project_is_not_merged(site: Site) -> None:
    site.reader.add(site.project.number + 1, json.dumps(showcase(NOW)).encode(), issue=5_000_000)
    assert (await post(site, "merge", [TWO[0], f"{5_000_000:016x}"]))[0] == 400
    assert site.changes.asked == []


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("?done=resolve&count=1", "1 issue resolved."),
        ("?done=merge&count=12", "12 issues merged into one."),
        ("?done=resolve&count=%3Cb%3E", None),
        ("?done=%3Cscript%3E&count=1", None),
    ],
)
async def test_the_list_says_what_was_done_in_its_own_words(
    site: Site, address: str, words: str | None
) -> None:
    fill(site.reader, site.project.number, NOW)
    await site.sign_in()
    html = await (await site.client.get(f"/projects/{site.project.id}/issues{address}")).text()
    assert (words in html) if words else ('role="status"' not in html)


async def test_discarding_by_the_page_is_said_there_and_undone(site: Site) -> None:
    fill(site.reader, site.project.number, NOW)
    await site.sign_in()
    issue = f"/issues/{SHOWCASE:016x}"
    for wanted, words in (("yes", "New events of this issue are dropped."), ("no", "Discard new events…")):
        csrf = re.search(r'name="csrf" value="([^"]+)"', await (await site.client.get(issue)).text())
        assert csrf is not None
        answer = await site.client.post(
            f"{issue}/change", data={"csrf": csrf[1], "change": "discard", "discard": wanted}
        )
        assert words in await answer.text()
