"""The pages and the API with who changed what."""

from msgspec.structs import replace

from control.change_log import change_of
from control.project_edits import create
from schemas.change_records import Author, Change
from tests.integration.dashboard.store import Store
from tests.integration.dashboard.stored_site import stored_site
from tests.unit.dashboard.auth.test_proxy_identity import PROXIED
from tests.unit.dashboard.auth.test_proxy_sign_in import person
from tests.unit.dashboard.site import NOW

OWN, BANK, ERASED = 9_000_001, 9_000_002, 9_000_003
ROLES = '{"admin": ["sre"], "viewer": ["*"], "projects": {"shop": {"admin": ["team"]}}}'


def changes() -> list[Change]:
    """Each written twice, and two of one instant."""
    author = Author("<zoe>", "command")
    projects = ["0", str(ERASED), str(BANK), str(OWN), str(OWN), str(OWN)]
    made = [
        change_of("signedIn" if project == "0" else "rulesChanged", author, NOW + number // 2, project)
        for number, project in enumerate(projects)
    ]
    return made + made


async def test_changes_are_listed_by_project_and_for_who_administers_it(store: Store) -> None:
    store.log_changes(made := changes())
    newest = [one.id for one in sorted(made[:6], key=lambda one: (one.at, one.id), reverse=True)]
    own = {one.id for one in made if one.project_id == str(OWN)}
    async with stored_site(store, OWN, replace(PROXIED, dashboard_roles=ROLES)) as site:
        await site.projects.write(replace(create("bank", now_ms=NOW), id=str(BANK)))

        async def listed(path: str, group: str) -> list[str]:
            found: list[str] = []
            cursor = ""
            while True:
                url = f"/api/v1{path}?limit=2{cursor}"
                page = await (await site.client.get(url, headers=person("ann", group))).json()
                found += [one["id"] for one in page["changes"]]
                if page["nextCursor"] is None:
                    return found
                cursor = f"&cursor={page['nextCursor']}"

        assert await listed("/changes", "sre") == newest
        mine = [one for one in newest if one in own]
        assert await listed("/changes", "team") == mine
        assert await listed("/changes", "readers") == []
        assert await listed(f"/projects/{OWN}/changes", "sre") == mine
        for path in ("/changes?limit=2", f"/projects/{OWN}/changes"):
            page = await site.client.get(path, headers=person("ann", "sre"))
            html = await page.text()
            assert page.status == 200
            assert "&lt;zoe&gt;" in html
            assert ("Next page" in html) == ("limit" in path)
