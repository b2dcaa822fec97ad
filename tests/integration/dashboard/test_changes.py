"""Changes of issues over the API and by the controls of their page."""

import re
from html import unescape
from typing import Any

import pytest

from grouping.rules import fixed_fingerprint
from schemas.errors import ChangePending, ChangeRefused, ChangesUnavailable
from schemas.ids import hex64
from storage.errors import StorageUnavailable
from storage.read.issues.issue_calls import GetIssueRow
from tests.integration.dashboard.stored_site import StoredSite
from tests.unit.dashboard.sample import SHOWCASE, issue_of

pytestmark = pytest.mark.usefixtures("sample_stored")


async def an_issue(site: StoredSite) -> str:
    _, body = await site.api("GET", f"/projects/{site.project.id}/issues")
    found: str = body["issues"][0]["id"]
    return found


@pytest.mark.holds("contract 4 issue")
async def test_a_patch_answers_the_changed_issue_and_the_next_read_shows_it(site: StoredSite) -> None:
    issue = await an_issue(site)
    status, body = await site.api("PATCH", f"/issues/{issue}", json={"resolvedIn": "next"})
    assert (status, body["status"]) == (200, "resolved")
    assert (await site.api("GET", f"/issues/{issue}"))[1]["status"] == "resolved"
    [made] = site.commands.made
    assert (made.data["resolvedIn"], made.by) == ("next", "admin")


async def test_a_page_says_after_which_release_the_fix_is_expected(site: StoredSite) -> None:
    issue = issue_of(SHOWCASE)
    await site.api("PATCH", f"/issues/{issue}", json={"resolvedIn": "next"})
    _, body = await site.api("GET", f"/issues/{issue}/activity")
    after = body["activity"][0]["data"]["after"]
    assert after.startswith("storefront-web@")
    await site.sign_in()
    page = await (await site.client.get(f"/issues/{issue}")).text()
    assert f"Resolved in the next release after <bdi>{after}</bdi>." in page


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, ""),
        ({"status": "closed"}, "status"),
        ({"status": "open", "resolvedIn": "next"}, "resolvedIn"),
        ({"ignoreUntil": {"events": 0}}, "ignoreUntil.events"),
        ({"ignoreUntil": {"events": 1, "users": 1}}, "ignoreUntil"),
        ({"ignoreUntil": {"time": "soon"}}, "ignoreUntil.time"),
        ({"ignoreUntil": {"time": "2020-01-01T00:00:00Z"}}, "ignoreUntil.time"),
        ({"ignoreUntil": {"days": 1}}, "ignoreUntil.days"),
        ({"assignee": ""}, "assignee"),
    ],
)
@pytest.mark.holds("contract 4 issue")
async def test_a_bad_change_names_its_field(site: StoredSite, body: dict[str, Any], field: str) -> None:
    issue = await an_issue(site)
    status, answer = await site.api("PATCH", f"/issues/{issue}", json=body)
    assert (status, answer["error"]) == (400, "validationFailed")
    assert answer["details"][0]["field"] == field


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [(ChangesUnavailable("late"), 503, "internal"), (ChangeRefused("busy"), 409, "conflict")],
)
async def test_a_change_that_is_not_made_says_whether_to_try_again(
    site: StoredSite, error: Exception, status: int, code: str
) -> None:
    issue = await an_issue(site)

    site.commands.failure = error
    found, answer = await site.api("POST", f"/issues/{issue}/merge", json={"issues": [issue_of(1)]})
    assert (found, answer["error"]) == (status, code)


async def test_discarding_names_the_fingerprints_in_the_project_until_it_is_undone(site: StoredSite) -> None:
    issue = await an_issue(site)
    status, body = await site.api("POST", f"/issues/{issue}/discard", json={})
    assert (status, body["status"]) == (200, "ignored")
    project = site.projects.get(site.project.number)
    assert project is not None
    assert list(project.discarded) == body["fingerprints"]
    _, body = await site.api("POST", f"/issues/{issue}/discard", json={"discard": False})
    project = site.projects.get(site.project.number)
    assert project is not None
    assert (project.discarded, body["status"]) == ((), "open")


async def test_a_page_suggests_similar_issues_and_merges_none_of_them(site: StoredSite) -> None:
    _, body = await site.api("GET", f"/projects/{site.project.id}/issues?limit=100")
    await site.sign_in()
    shown = 0
    for issue in body["issues"][:8]:
        similar = (await site.api("GET", f"/issues/{issue['id']}/similar?limit=5"))[1]["similar"]
        html = unescape(await (await site.client.get(f"/issues/{issue['id']}")).text())
        for one in similar:
            assert f'name="other" value="{one["id"]}"' in html
            assert one["reason"].partition(":")[0] in html
        shown += len(similar)
    assert shown
    assert site.commands.made == []


@pytest.mark.parametrize(
    ("fields", "kind", "data"),
    [
        ({"change": "resolve"}, "update", {"status": "resolved", "resolvedIn": None}),
        ({"change": "resolve", "where": "next"}, "update", {"status": "resolved", "resolvedIn": "next"}),
        (
            {"change": "resolve", "where": "release", "release": "a@1+1"},
            "update",
            {"status": "resolved", "resolvedIn": "a@1+1"},
        ),
        ({"change": "ignore"}, "update", {"status": "ignored", "ignoreUntil": None}),
        ({"change": "ignore", "until": "forever"}, "update", {"status": "ignored", "ignoreUntil": None}),
        (
            {"change": "ignore", "until": "users 10"},
            "update",
            {"status": "ignored", "ignoreUntil": {"users": 10}},
        ),
        (
            {"change": "ignore", "until": "escalating"},
            "update",
            {"status": "ignored", "ignoreUntil": {"escalating": True}},
        ),
        (
            {"change": "ignore", "unit": "events", "count": "7"},
            "update",
            {"status": "ignored", "ignoreUntil": {"events": 7}},
        ),
        (
            {"change": "ignore", "until": "events", "count": "7"},
            "update",
            {"status": "ignored", "ignoreUntil": {"events": 7}},
        ),
        ({"change": "reopen"}, "update", {"status": "open"}),
        ({"change": "assign", "assignee": "bob"}, "update", {"assignee": "bob"}),
        ({"change": "comment", "text": "hm"}, "comment", {"text": "hm"}),
        ({"change": "merge", "other": issue_of(1)}, "merge", {"issues": [issue_of(1)]}),
        ({"change": "unmerge", "fingerprint": hex64(1)}, "unmerge", {"fingerprints": [hex64(1)]}),
    ],
)
@pytest.mark.holds("contract 4 activity")
async def test_each_control_of_the_page_makes_its_change(
    site: StoredSite, fields: dict[str, str], kind: str, data: dict[str, Any]
) -> None:
    issue = issue_of(SHOWCASE)
    if kind == "unmerge":
        await site.api("POST", f"/issues/{issue}/merge", json={"issues": [issue_of(1)]})
        site.commands.made.clear()
    await site.sign_in()
    answer = await site.client.post(
        f"/issues/{issue}/change", data=fields | {"csrf": await site.csrf()}, allow_redirects=False
    )
    was = fields.get("other") or fields.get("fingerprint")
    done = f"done={fields['change']}" + (f"&was={was}" if was else "")
    assert (answer.status, answer.headers["Location"]) == (303, f"/issues/{issue}?{done}")
    [made] = site.commands.made
    assert (made.kind, made.issue, made.by) == (kind, issue, "admin")
    assert made.data.items() >= data.items()


async def test_opening_the_link_of_a_message_changes_nothing_and_its_buttons_ignore(site: StoredSite) -> None:
    issue = issue_of(SHOWCASE)
    address = f"/issues/{issue}/snooze"
    answer = await site.client.get(address, allow_redirects=False)
    assert (answer.status, answer.headers["Location"]) == (303, f"/sign-in?next={address}")
    await site.sign_in()
    html = await (await site.client.get(address)).text()
    assert site.commands.made == []
    assert re.findall(r'name="until" value="([^"]+)"', html) == ["morning 0", "events 100", "escalating"]
    assert re.search(r'<button class="primary"[^>]* autofocus>', html)


async def test_the_link_of_a_message_leads_to_the_issue_that_its_issue_was_merged_into(
    site: StoredSite,
) -> None:
    issue = issue_of(SHOWCASE)
    await site.api("POST", f"/issues/{issue}/merge", json={"issues": [issue_of(1)]})
    await site.sign_in()
    html = await (await site.client.get(f"/issues/{issue_of(1)}/snooze")).text()
    assert f'action="/issues/{issue}/change"' in html


async def test_a_change_that_is_still_being_applied_stays_on_the_page_and_says_so(site: StoredSite) -> None:
    issue = await an_issue(site)
    await site.sign_in()
    html = await (await site.client.get(f"/issues/{issue}")).text()
    assert "still pending" not in html
    csrf = await site.csrf()
    site.commands.failure = ChangePending("the change was not confirmed in time")
    answer = await site.client.post(
        f"/issues/{issue}/change",
        data={"change": "resolve", "was": "open", "query": "os:ios", "csrf": csrf},
        allow_redirects=False,
    )
    address = f"/issues/{issue}?query=os%3Aios&pending=resolve&was=open"
    assert (answer.status, answer.headers["Location"]) == (303, address)
    # A change is pending until the issue shows it; then it counts as made, even without a confirmation.
    assert "still pending" in await (await site.client.get(f"/issues/{issue}?pending=ignore&was=open")).text()
    html = await (await site.client.get(address)).text()
    assert "still pending" not in html
    assert re.search(r"Resolved\..*name=\"change\" value=\"reopen\"><button[^>]*>Undo", html, re.DOTALL)
    site.commands.failure = ChangesUnavailable("Kafka did not answer in time; nothing was changed")
    answer = await site.client.post(f"/issues/{issue}/change", data={"change": "reopen", "csrf": csrf})
    assert (answer.status, "nothing was changed" in await answer.text()) == (503, True)


async def test_a_page_that_fails_after_a_change_says_that_the_change_was_made(site: StoredSite) -> None:
    issue = await an_issue(site)
    await site.sign_in()

    site.reader.failing[GetIssueRow] = StorageUnavailable("ClickHouse took too long")
    for address, is_confirmed in ((f"/issues/{issue}?done=resolve", True), (f"/issues/{issue}", False)):
        answer = await site.client.get(address)
        html = await answer.text()
        assert (answer.status, answer.headers["Retry-After"]) == (503, "2")
        assert ("Your change was saved" in html) == is_confirmed
        assert f'href="{address}">Try again' in html


@pytest.mark.parametrize(
    "fields",
    [
        {"change": "explode"},
        {"change": "resolve", "where": "release", "release": " "},
        {"change": "ignore", "until": "events", "count": "0"},
        {"change": "ignore", "until": "hours", "count": "1000000"},
        {"change": "ignore", "until": "morning 1e3"},
        {"change": "ignore", "until": "morning 999"},
        {"change": "comment", "text": " "},
        {"change": "merge", "other": "x"},
        {"change": "unmerge"},
    ],
)
async def test_a_form_that_says_too_little_changes_nothing(site: StoredSite, fields: dict[str, str]) -> None:
    issue = await an_issue(site)
    await site.sign_in()
    answer = await site.client.post(f"/issues/{issue}/change", data=fields | {"csrf": await site.csrf()})
    assert answer.status == 400
    assert site.commands.made == []


async def test_after_a_merge_the_page_offers_the_rule_that_catches_the_merged_issues_alone_and_tests_it(
    site: StoredSite,
) -> None:
    _, body = await site.api("GET", f"/projects/{site.project.id}/issues?query=type:HttpError")
    into, *others, last = [one["id"] for one in body["issues"] if "failed with status code" in one["message"]]
    assert others
    assert (await site.api("POST", f"/issues/{into}/merge", json={"issues": others}))[0] == 200
    await site.sign_in()
    offered = re.compile(r'<a href="([^"]+)">Test a rule that groups such events together</a>')
    html = await (await site.client.get(f"/issues/{into}?done=merge&was={others[-1]}")).text()
    assert "was merged into this one" in html
    # The rule would catch events of the last one too, which isn't merged yet.
    assert offered.search(html) is None
    merge = {"change": "merge", "other": last, "csrf": await site.csrf()}
    html = await (await site.client.post(f"/issues/{into}/change", data=merge)).text()
    offer = offered.search(html)
    assert offer is not None
    rules = await (await site.client.get(unescape(offer[1]))).text()
    assert '"test-title"' in rules
    matched = re.search(r"Matched by a rule</dt><dd>([\d,]+)", rules)
    assert matched is not None
    assert int(matched[1].replace(",", "")) > 0
    assert "status code" in rules
    assert "When you save it, its events belong to the issue" in rules
    # Nothing is saved until the form is submitted.
    assert site.projects.all()[0].grouping_rules == ()
    site.commands.made.clear()
    fields = dict(re.findall(r'<input[^>]*name="(csrf|into|name|match)"[^>]*value="([^"]*)"', rules))
    fields = {name: unescape(value) for name, value in fields.items()}
    more = {
        "fingerprint": fields["name"],
        "inApp": "",
        "notInApp": "",
        "discard": "",
        "enabled": "",
        "position": "1",
    }
    saved = await site.client.post(
        f"/projects/{site.project.id}/rules", data=fields | more | {"do": "save"}, allow_redirects=False
    )
    assert saved.status == 303
    (rule,) = site.projects.all()[0].grouping_rules
    (command,) = site.commands.made
    fingerprint = fixed_fingerprint(rule)
    assert fingerprint is not None
    assert (command.issue, command.kind, command.data) == (
        into,
        "merge",
        {"fingerprints": [hex64(fingerprint)]},
    )
    assert hex64(fingerprint) in (await site.api("GET", f"/issues/{into}"))[1]["fingerprints"]
