"""Pages and the read API while accepted events wait to be stored."""

from broker.pipeline_lag import Behind, Lag
from tests.integration.dashboard.stored_site import StoredSite
from tests.unit.dashboard.sample import SHOWCASE, issue_of
from tests.unit.dashboard.site import NOW

PAGES = ("issues", "releases", "outcomes")
ISSUE = f"/issues/{issue_of(SHOWCASE)}"
BEHIND = Lag(is_known=True, behind=Behind(NOW - 155_000, 149))


async def page(site: StoredSite, path: str) -> str:
    answer = await site.client.get(path)
    assert answer.status == 200
    return await answer.text()


async def test_pages_with_figures_say_that_events_wait_and_since_when(
    sample_stored: int, site: StoredSite
) -> None:
    await site.sign_in()
    paths = [*(f"/projects/{sample_stored}/{name}" for name in PAGES), ISSUE, f"{ISSUE}/events"]
    for path in paths:
        assert "data-behind" not in await page(site, path)
    site.lag.lag = BEHIND
    for path in paths:
        text = await page(site, path)
        assert "<span data-distance>2 min</span> behind" in text
        assert 'datetime="2025-10-09T08:50:45.000Z"' in text
    for name in ("settings", "rules"):
        assert "data-behind" not in await page(site, f"/projects/{sample_stored}/{name}")


async def test_the_api_says_it_too_and_when_it_does_not_know(site: StoredSite) -> None:
    assert (await site.api("GET", "/pipeline"))[1] == {"known": True, "behind": None}
    site.lag.lag = BEHIND
    assert (await site.api("GET", "/pipeline"))[1] == {
        "known": True,
        "behind": {"completeUntil": "2025-10-09T08:50:45.000Z", "seconds": 155, "records": 149},
    }
    site.lag.lag = Lag()
    assert (await site.api("GET", "/pipeline"))[1] == {"known": False, "behind": None}
