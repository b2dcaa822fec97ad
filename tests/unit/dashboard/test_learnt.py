"""What grouping has learnt: over the API and on the page of rules, overruled and used again."""

import re

import pytest
from msgspec.structs import replace

from schemas.errors import ProjectsUnavailable
from schemas.projects import LearntFact
from schemas.times import DAY_MS
from tests.unit.dashboard.site import NOW, Site

HELPER = LearntFact("helper", "save in orm.py", callers=41, messages=380, learnt_at=NOW - 20 * DAY_MS)
TELLING = LearntFact("telling", "interface <*> is down", 0, ("eth0", "wlan0"), messages=40, learnt_at=NOW)
HOSTILE = LearntFact("varies", "no <script>alert(1)</script> \u202e<*>", 2, messages=17, learnt_at=NOW)


async def learn(site: Site, *facts: LearntFact) -> None:
    await site.projects.edit(site.project.number, lambda old: replace(old, learnt=facts))


def overruled(site: Site) -> list[str]:
    """The texts of overruled facts."""
    return [fact.text for fact in site.projects.all()[0].learnt if fact.overruled]


async def opened(site: Site, more: str = "") -> str:
    answer = await site.client.get(f"/projects/{site.project.id}/rules{more}")
    assert answer.status == 200
    return await answer.text()


async def post(site: Site, fact: str, **fields: str) -> int:
    """Sends the form of a fact; the status without following."""
    csrf = re.search(r'name="csrf" value="([^"]+)"', await opened(site))
    assert csrf is not None
    path = f"/projects/{site.project.id}/learnt/{fact}"
    answer = await site.client.post(path, data={"csrf": csrf[1]} | fields, allow_redirects=False)
    if answer.status == 303:
        assert answer.headers["Location"] == f"/projects/{site.project.id}/rules?fact=saved#learnt"
    return answer.status


async def test_facts_are_listed_with_their_ids_and_times(site: Site) -> None:
    path = f"/projects/{site.project.id}/learnt"
    assert await site.api("GET", path) == (200, {"learnt": []})
    await learn(site, HELPER, TELLING)
    status, answer = await site.api("GET", path)
    assert status == 200
    assert answer["learnt"] == [
        {
            "id": HELPER.id,
            "kind": "helper",
            "text": "save in orm.py",
            "at": 0,
            "values": [],
            "callers": 41,
            "messages": 380,
            "learntAt": "2025-09-19T08:53:20.000Z",
            "overruled": False,
        },
        {
            "id": TELLING.id,
            "kind": "telling",
            "text": "interface <*> is down",
            "at": 0,
            "values": ["eth0", "wlan0"],
            "callers": 0,
            "messages": 40,
            "learntAt": "2025-10-09T08:53:20.000Z",
            "overruled": False,
        },
    ]


async def test_a_fact_is_overruled_and_used_again(site: Site) -> None:
    await learn(site, HELPER, TELLING)
    path = f"/projects/{site.project.id}/learnt"
    status, fact = await site.api("POST", f"{path}/{TELLING.id}", json={"overruled": True})
    assert (status, fact["id"], fact["overruled"]) == (200, TELLING.id, True)
    assert overruled(site) == [TELLING.text]
    assert (await site.api("GET", path))[1]["learnt"][1] == fact
    status, fact = await site.api("POST", f"{path}/{TELLING.id}", json={"overruled": False})
    assert (status, fact["overruled"]) == (200, False)
    assert site.projects.all()[0].learnt == (HELPER, TELLING)


async def test_a_change_that_is_repeated_under_its_key_is_made_once(site: Site) -> None:
    await learn(site, HELPER)
    path, key = f"/projects/{site.project.id}/learnt/{HELPER.id}", {"Idempotency-Key": "k"}
    first = await site.api("POST", path, json={"overruled": True}, headers=key)
    assert first[0] == 200
    stored = site.projects.all()
    assert await site.api("POST", path, json={"overruled": True}, headers=key) == first
    assert site.projects.all() == stored
    status, refused = await site.api("POST", path, json={"overruled": False}, headers=key)
    assert (status, refused["error"]) == (409, "conflict")
    assert overruled(site) == [HELPER.text]


@pytest.mark.parametrize("fact", ["0" * 16, "x", HELPER.text])
async def test_an_unknown_fact_is_not_found_and_leaves_the_record(site: Site, fact: str) -> None:
    await learn(site, HELPER)
    before = site.projects.all()
    path = f"/projects/{site.project.id}/learnt/{fact}"
    key = {"Idempotency-Key": "k"}
    assert await site.api("POST", path, json={"overruled": True}, headers=key) == (404, {"error": "notFound"})
    await site.sign_in()
    assert await post(site, fact, overruled="yes") == 404
    assert site.projects.all() == before


async def test_the_page_shows_the_facts_and_their_forms_change_them(site: Site) -> None:
    await site.sign_in()
    assert "What grouping has learnt" not in await opened(site)
    await learn(site, HELPER, TELLING)
    page = await opened(site)
    assert '<span class="mono"><bdi>save in orm.py</bdi></span> is a helper here: 41 callers' in page
    assert page.count(">Overrule</button>") == 2
    assert "overruled</span>" not in page
    assert "Saved." not in page
    assert await post(site, HELPER.id, overruled="yes") == 303
    assert overruled(site) == [HELPER.text]
    page = await opened(site, "?fact=saved")
    assert "Saved." in page
    assert re.search(rf'<div class="learnt-fact muted"><p id="fact-{HELPER.id}">', page)
    assert page.count(">overruled</span>") == page.count(">Use again</button>") == 1
    assert page.count(">Overrule</button>") == page.count("Not used for new events.") == 1
    assert page.count("Callers and messages tell its problems apart too.") == 0
    assert await post(site, HELPER.id, overruled="no") == 303
    assert overruled(site) == []


async def test_text_of_events_is_shown_as_text(site: Site) -> None:
    await site.sign_in()
    await learn(site, HOSTILE)
    page = await opened(site)
    assert "<script>alert" not in page
    assert "no &lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "\u202e" not in page


async def test_an_incomplete_form_changes_nothing(site: Site) -> None:
    await site.sign_in()
    await learn(site, HELPER)
    assert await post(site, HELPER.id) == 400
    assert await post(site, HELPER.id, overruled="maybe") == 400
    path = f"/projects/{site.project.id}/learnt/{HELPER.id}"
    assert (await site.client.post(path, data={"overruled": "yes"})).status == 403
    assert overruled(site) == []


async def test_a_fact_that_cannot_be_overruled_now_says_so(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    await site.sign_in()
    await learn(site, HELPER)

    async def refuse(*_: object) -> None:
        raise ProjectsUnavailable

    monkeypatch.setattr(site.projects, "edit", refuse)
    assert await post(site, HELPER.id, overruled="yes") == 503
