"""`svc sourcemaps upload` against a dashboard that notes what it gets."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from aiohttp import encode_basic_auth, web
from aiohttp.test_utils import TestServer
from click.testing import CliRunner, Result

from cli.__main__ import svc
from cli.sourcemaps import built_files
from tests.builds import BUILDS, MAPPING, VITE


class Taken(NamedTuple):
    """An upload."""

    authorization: str
    release: str
    path: str
    parts: dict[str, tuple[str, bytes]]


@pytest.fixture
async def dashboard() -> AsyncIterator[tuple[str, list[Taken]]]:
    """Its address and what it took; it refuses mappings."""
    taken: list[Taken] = []

    async def take(request: web.Request) -> web.Response:
        form = await request.post()
        parts = {
            name: (part.filename, part.file.read())
            for name, part in form.items()
            if isinstance(part, web.FileField)
        }
        query = request.query
        taken.append(Taken(request.headers["Authorization"], query["release"], query["path"], parts))
        if query["path"].endswith("mapping.txt"):
            details: list[Any] = [{"field": "map", "message": "it has no sources"}]
            return web.json_response({"error": "validationFailed", "details": details}, status=400)
        return web.json_response({})

    app = web.Application()

    async def refuse(_request: web.Request) -> web.Response:
        details: list[Any] = [{"field": "map", "message": "the project is full"}]
        return web.json_response({"error": "conflict", "details": details}, status=409)

    app.router.add_put("/api/v1/projects/7/artifacts", take)
    app.router.add_put("/full/api/v1/projects/7/artifacts", refuse)
    async with TestServer(app) as server:
        yield str(server.make_url("/")), taken


async def upload(folder: Path, url: str, project: str = "7", **environment: str) -> Result:
    command = ["sourcemaps", "upload", "--release", "shop@1+1", "--project", project]
    command += ["--url", url, str(folder)]
    given = ["--data-dir", str(folder / "data"), *command]
    return await asyncio.to_thread(CliRunner().invoke, svc, given, env=environment)


async def test_each_map_is_sent_with_its_file(dashboard: tuple[str, list[Taken]]) -> None:
    url, taken = dashboard
    result = await upload(BUILDS / "vite-1", url, SVC_ADMIN_PASSWORD="secret")
    assert result.exit_code == 0, result.output
    assert result.output == "assets/index-BIB-3fzx.js: uploaded\n"
    name = "index-BIB-3fzx.js"
    parts = {"map": (f"{name}.map", VITE[0].map), "file": (name, VITE[0].script)}
    assert taken == [Taken(encode_basic_auth("admin", "secret"), "shop@1+1", f"assets/{name}", parts)]


async def test_a_refusal_is_one_line_and_the_others_are_sent(
    dashboard: tuple[str, list[Taken]], tmp_path: Path
) -> None:
    url, taken = dashboard
    shutil.copytree(BUILDS / "esbuild-1", tmp_path / "web")
    shutil.copy(MAPPING, tmp_path)
    result = await upload(tmp_path, url, SVC_API_KEY="svc_sk_x")
    assert result.exit_code == 1
    assert "mapping.txt: it has no sources\n" in result.output
    assert "1 of 2 not uploaded" in result.output
    assert {one.authorization for one in taken} == {"Bearer svc_sk_x"}


@pytest.mark.parametrize(
    ("path", "code", "sentence"),
    [
        ("closed", 1, "assets/index-BIB-3fzx.js not uploaded: Cannot connect to host"),
        ("none", 1, "not uploaded: the dashboard has no such project, or the key is for another one"),
        ("full", 1, "not uploaded: the project is full"),
        ("no address", 2, "is no address"),
    ],
)
async def test_what_is_no_fault_of_a_file_ends_the_command(
    dashboard: tuple[str, list[Taken]], path: str, code: int, sentence: str
) -> None:
    url = {"closed": "http://127.0.0.1:1", "no address": "x"}.get(path, f"{dashboard[0]}{path}")
    result = await upload(BUILDS / "vite-1", url, SVC_API_KEY="k")
    assert result.exit_code == code
    assert sentence in result.output
    assert result.output.count("not uploaded") == (code == 1)


async def test_without_a_map_or_a_sign_in_nothing_is_sent(tmp_path: Path) -> None:
    result = await upload(tmp_path, "http://127.0.0.1:1", SVC_API_KEY="k")
    assert (result.exit_code, "has no source map" in result.output) == (2, True)
    result = await upload(tmp_path, "http://127.0.0.1:1")
    assert (result.exit_code, "SVC_API_KEY" in result.output) == (2, True)


async def test_a_project_is_named_by_its_id() -> None:
    result = await upload(BUILDS / "vite-1", "http://127.0.0.1:1", "shop", SVC_API_KEY="k")
    assert result.exit_code == 2
    assert "'--project': 'shop' is not a valid integer" in result.output


def test_files_find_their_maps_by_the_comment_or_the_name(tmp_path: Path) -> None:
    def write(path: str, text: str = "{}") -> None:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)

    write("js/named.js", "x\n//# sourceMappingURL=../maps/named.map?v=1")
    write("maps/named.map")
    write("js/[id] one.js", "x\n//# sourceMappingURL=%5Bid%5D%20one.js.map")
    write("js/[id] one.js.map")
    write("js/nul.js", "x\n//# sourceMappingURL=a\0b.map")
    write("js/nul.js.map")
    write("js/beside.mjs", "x")
    write("js/beside.mjs.map")
    write("index.android.bundle.map")
    write("js/inline.js", "x\n//# sourceMappingURL=data:application/json;base64,e30=")
    write("js/none.js", "x")
    found = {(one.path, one.map.name, one.script is not None) for one in built_files(tmp_path)}
    assert found == {
        ("js/named.js", "named.map", True),
        ("js/[id] one.js", "[id] one.js.map", True),
        ("js/nul.js", "nul.js.map", True),
        ("js/beside.mjs", "beside.mjs.map", True),
        ("index.android.bundle", "index.android.bundle.map", False),
    }
