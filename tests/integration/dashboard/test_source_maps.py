"""Uploaded maps resolve stacks of events that are there: in the API, on pages, and in copies."""

import asyncio
import secrets
from io import BytesIO
from typing import Any

import aiohttp
import pytest
from msgspec.structs import replace

from control.project_edits import create
from schemas.ids import hex64, issue_id
from storage.client import open_client
from storage.read.artifacts import FindArtifacts, GetArtifact, HasArtifacts
from tests.builds import ESBUILD, HERMES, MAPPING, R8_STACK, VITE, Build, event_of
from tests.eventually import eventually
from tests.integration.dashboard.store import Store
from tests.integration.dashboard.stored_site import StoredSite, stored_site
from tests.unit.dashboard.auth.test_keys import ask, new_key
from tests.unit.dashboard.sample import Sent
from tests.unit.dashboard.site import NOW, SETTINGS

FINGERPRINT = 77
ORIGINAL = "totalOf in src/cart.ts:9"
SOURCE = "    total += item.price!.cents;"


def store_event(site: StoredSite, event: dict[str, Any]) -> str:
    """The issue of a stored event."""
    site.store.add(site.project.number, [Sent(event, FINGERPRINT, "svc-js/1", NOW, ["x"])])
    return hex64(issue_id(site.project.number, FINGERPRINT))


async def upload(
    site: StoredSite, release: str, path: str, content: bytes, script: bytes = b""
) -> tuple[int, Any]:
    form = aiohttp.FormData()
    form.add_field("map", BytesIO(content), filename=f"{path.rpartition('/')[2]}.map")
    if script:
        form.add_field("file", BytesIO(script), filename=path.rpartition("/")[2])
    given = {"params": {"release": release, "path": path}, "data": form}
    return await site.api("PUT", f"/projects/{site.project.id}/artifacts", **given)


async def upload_build(site: StoredSite, build: Build) -> tuple[int, Any]:
    return await upload(site, build.release, build.file, build.map, build.script)


async def frames(site: StoredSite, issue: str) -> list[dict[str, Any]]:
    """The frames of the newest event as maps resolve them."""
    detail = (await site.api("GET", f"/issues/{issue}/events/latest"))[1]
    resolved = detail["resolved"]
    return resolved["error"]["stack"] if resolved and resolved["error"] else []


async def page(site: StoredSite, path: str) -> str:
    return await (await site.client.get(path)).text()


@pytest.mark.parametrize("build", [VITE[0], ESBUILD[0]], ids=["vite", "esbuild"])
async def test_a_map_that_comes_late_shows_the_source_of_an_event(site: StoredSite, build: Build) -> None:
    issue = store_event(site, build.event(1, NOW))
    assert (await site.api("GET", f"/issues/{issue}/events/latest"))[1]["resolved"] is None

    assert (await upload_build(site, build))[0] == 200
    top = (await frames(site, issue))[0]
    assert (top["function"], top["file"], top["line"], top["contextLine"]) == (
        "totalOf",
        "src/cart.ts",
        9,
        SOURCE,
    )
    sent = (await site.api("GET", f"/issues/{issue}/events/latest"))[1]["event"]["error"]["stack"][0]
    assert (sent["file"], sent["column"]) == (build.address, build.stack[0][2])

    await site.sign_in()
    shown = await page(site, f"/issues/{issue}")
    assert ORIGINAL in shown
    assert "src/cart.ts:9:" in shown.partition('id="as-markdown"')[2]
    as_sent = await page(site, f"/issues/{issue}?stack=sent")
    assert f"{build.address}:1:{build.stack[0][2]}" in as_sent
    assert "Show original source" in as_sent

    async def listed() -> bool:
        return ORIGINAL in await page(site, f"/projects/{site.project.id}/issues")

    await eventually(listed)


async def test_a_hashed_name_is_found_without_its_release_unless_two_contents_have_it(
    site: StoredSite,
) -> None:
    build = VITE[0]
    issue = store_event(site, build.event(1, NOW) | {"release": "shop@9.9.9+9"})
    await upload_build(site, build)
    assert (await frames(site, issue))[0]["file"] == "src/cart.ts"
    await upload(site, "shop@3.0.0+3", build.file, build.map)
    assert await frames(site, issue) == []


async def test_a_bundle_of_hermes_is_resolved_by_its_function_map(site: StoredSite) -> None:
    issue = store_event(site, HERMES.event(1, NOW))
    assert (await upload(site, HERMES.release, "index.android.bundle", HERMES.map))[0] == 200
    assert [(one["function"], one["line"]) for one in await frames(site, issue)] == [
        ("totalOf", 9),
        ("Checkout#submitOrder", 18),
        ("handleClick", 12),
    ]


async def test_a_mapping_of_r8_names_classes_and_inlined_calls(site: StoredSite) -> None:
    event = event_of("android@1.0.0+1", 1, NOW, R8_STACK, "android")
    event["error"]["type"] = "a.c"
    issue = store_event(site, event)
    assert (await upload(site, "android@1.0.0+1", "mapping.txt", MAPPING.read_bytes()))[1]["kind"] == "r8"
    detail = (await site.api("GET", f"/issues/{issue}/events/latest"))[1]
    assert detail["resolved"]["error"]["type"] == "shop.cart.PriceMissing"
    assert [(one["function"], one["file"], one["line"]) for one in await frames(site, issue)] == [
        ("shop.cart.Prices.centsOf", "SourceFile", 11),
        ("shop.cart.Cart.total", "Cart.kt", 14),
        ("shop.ui.CheckoutActivity.onPay", "CheckoutActivity.kt", 32),
        ("java.lang.Thread.run", "Thread.java", 920),
    ]


async def test_maps_are_listed_with_sizes_and_deleted(site: StoredSite) -> None:
    issue = store_event(site, VITE[0].event(1, NOW))
    made = (await upload_build(site, VITE[0]))[1]
    await upload_build(site, VITE[1])
    maps = f"/projects/{site.project.id}/artifacts"
    listed = (await site.api("GET", maps))[1]
    assert [one["release"] for one in listed["artifacts"]] == [VITE[1].release, VITE[0].release]
    assert made in listed["artifacts"]
    assert made["bytes"] == len(VITE[0].map) + len(VITE[0].script)
    where = {"params": {"release": VITE[1].release, "path": VITE[1].file}}
    assert await site.api("DELETE", maps, **where) == (200, {"deleted": 1})
    assert (await site.api("DELETE", maps, **where))[0] == 404
    await site.sign_in()
    assert VITE[0].file in await page(site, f"/projects/{site.project.id}/source-maps")
    form = {"csrf": await site.csrf(), "release": VITE[0].release}
    await site.client.post(f"/projects/{site.project.id}/source-maps", data=form)
    assert (await site.api("GET", maps))[1]["storedBytes"] == 0
    assert await frames(site, issue) == []
    assert [(one.kind, one.via, one.after) for one in site.projects.changes if one.kind != "signedIn"] == [
        ("sourceMapsUploaded", "api", f'{{"release":"{VITE[0].release}"}}'),
        ("sourceMapsUploaded", "api", f'{{"release":"{VITE[1].release}"}}'),
        ("sourceMapsDeleted", "api", f'{{"release":"{VITE[1].release}","path":"{VITE[1].file}"}}'),
        ("sourceMapsDeleted", "page", f'{{"release":"{VITE[0].release}"}}'),
    ]


async def test_a_deletion_is_known_as_long_as_the_map_would_have_been(site: StoredSite) -> None:
    await upload_build(site, VITE[0])
    await site.api("DELETE", f"/projects/{site.project.id}/artifacts", params={"release": VITE[0].release})
    client = open_client(site.store.url)
    for table in ("artifacts", "artifact_links"):
        text = f"SELECT max(expires) = argMax(expires, version) FROM {table} WHERE project_id = {{p:UInt32}}"
        assert client.query(text, parameters={"p": site.project.number}).first_row == (1,)
    client.close()


async def test_a_content_that_another_release_has_stays(site: StoredSite) -> None:
    build = VITE[0]
    issue = store_event(site, build.event(1, NOW))
    await upload_build(site, build)
    await upload(site, "shop@2.0.0+2", build.file, build.map, build.script)
    await site.api("DELETE", f"/projects/{site.project.id}/artifacts", params={"release": "shop@2.0.0+2"})
    assert (await frames(site, issue))[0]["function"] == "totalOf"


async def test_a_full_project_takes_no_more(store: Store) -> None:
    async with stored_site(store, 7_400_001, replace(SETTINGS, source_map_megabytes=1)) as site:
        noise = secrets.token_hex(1_200_000)
        assert (await upload_build(site, VITE[0]))[0] == 200
        big = b'{"version":3,"sources":["a"],"mappings":"AAAA","sourcesContent":["%s"]}' % noise.encode()
        status, body = await upload(site, "a@1+1", "a.js", big)
        assert (status, body["details"][0]["message"]) == (
            409,
            "the project has its 1 MB of source maps: delete old releases",
        )
        assert len((await site.api("GET", f"/projects/{site.project.id}/artifacts"))[1]["artifacts"]) == 1


def noisy() -> bytes:
    """A map that compressed has more than 600,000 bytes, and less than a million."""
    noise = secrets.token_hex(600_000)
    return b'{"version":3,"sources":["a"],"mappings":"AAAA","sourcesContent":["%s"]}' % noise.encode()


async def test_a_full_project_takes_a_map_in_place_of_another_and_one_of_two_that_come_together(
    store: Store,
) -> None:
    async with stored_site(store, 7_400_002, replace(SETTINGS, source_map_megabytes=1)) as site:
        together = await asyncio.gather(*(upload(site, "a@1+1", f"{name}.js", noisy()) for name in "ab"))
        assert sorted(status for status, _ in together) == [200, 409]
        made = next(body for status, body in together if status == 200)
        status, new = await upload(site, "a@1+1", made["path"], noisy())
        assert status == 200
        contents = [await site.reader.read(GetArtifact(7_400_002, one["digest"])) for one in (made, new)]
        assert [bool(content) for content in contents] == [False, True]


async def test_a_path_that_no_file_has_deletes_nothing(site: StoredSite) -> None:
    maps = f"/projects/{site.project.id}/artifacts"
    await upload_build(site, VITE[0])
    for path in ("/", "./", "?v=1"):
        where = {"params": {"release": VITE[0].release, "path": path}}
        assert (await site.api("DELETE", maps, **where))[0] == 404
        assert (await site.api("GET", maps, **where))[1]["artifacts"] == []
    where = {"params": {"release": VITE[0].release, "path": f"/{VITE[0].file}"}}
    assert await site.api("DELETE", maps, **where) == (200, {"deleted": 1})


async def test_what_is_no_map_is_refused_in_one_sentence(site: StoredSite) -> None:
    status, body = await upload(site, "a@1+1", "a.js", b"{}")
    assert (status, body["details"][0]["field"]) == (400, "map")
    assert (await upload(site, "", "a.js", VITE[0].map))[0] == 400
    assert (await upload(site, "a@1+1", "a.js", b"x" * (50 << 20) + b"xx"))[0] == 413
    answer = await site.api("PUT", f"/projects/{site.project.id}/artifacts?release=a&path=b", json={})
    assert (answer[0], answer[1]["details"][0]["field"]) == (400, "Content-Type")


async def test_a_key_for_artifacts_uploads_to_its_project_and_reads_no_events(site: StoredSite) -> None:
    secret, path = await new_key(site, "artifacts"), f"/projects/{site.project.id}"
    given = {"params": {"release": VITE[0].release, "path": VITE[0].file}}
    status, _ = await ask(
        site, secret, f"{path}/artifacts", "PUT", data={"map": BytesIO(VITE[0].map)}, **given
    )
    assert status == 200
    assert len((await ask(site, secret, f"{path}/artifacts"))[1]["artifacts"]) == 1
    assert (await ask(site, secret, f"{path}/artifacts", "DELETE", **given))[0] == 200
    assert (await ask(site, secret, f"{path}/issues"))[0] == 404
    reading = await new_key(site, "read")
    assert (await ask(site, reading, f"{path}/artifacts"))[0] == 200
    assert (await ask(site, reading, f"{path}/artifacts", "DELETE", **given))[0] == 403
    await site.projects.write(other := create("other", now_ms=NOW))
    assert (await ask(site, secret, f"/projects/{other.id}/artifacts"))[0] == 404


async def test_without_maps_an_event_costs_one_look_in_seconds(site: StoredSite) -> None:
    issue = store_event(site, VITE[0].event(1, NOW))
    site.reader.failing[FindArtifacts] = AssertionError("there is nothing to find")
    for _ in range(3):
        assert (await site.api("GET", f"/issues/{issue}/events/latest"))[0] == 200
    assert site.reader.calls[HasArtifacts] == 1
