"""The JavaScript library, as the dashboard serves it to pages and bundlers."""

import asyncio
import base64
import hashlib
import html
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.unit.dashboard.site import Site

SOURCES = Path(__file__).parents[3] / "svc-js"
NPM = shutil.which("npm")
needs_npm = pytest.mark.skipif(NPM is None and "CI" not in os.environ, reason="there is no npm here")


async def first_steps(site: Site) -> str:
    """The text of a project's settings; the session ends."""
    await site.sign_in()
    page = await (await site.client.get(f"/projects/{site.project.id}/settings")).text()
    site.client.session.cookie_jar.clear()
    return html.unescape(page)


async def test_another_origin_loads_the_module_and_those_that_it_imports(site: Site) -> None:
    page = await first_steps(site)
    (url,) = re.findall(r'import \* as svc from "(http.*?)"', page)
    hashes: dict[str, str] = json.loads(page.split('<script type="importmap">')[1].split("</script>")[0])[
        "integrity"
    ]
    loaded, waiting = set(), [url]
    while waiting:
        url = waiting.pop()
        answer = await site.client.get(urlsplit(url).path, headers={"Accept-Encoding": "gzip"})
        assert answer.status == 200
        assert answer.headers["Access-Control-Allow-Origin"] == "*"
        assert answer.headers["Cache-Control"] == "public, max-age=31536000, immutable"
        assert answer.headers["Content-Type"] == "text/javascript; charset=utf-8"
        assert (answer.headers["Content-Encoding"], answer.headers["Vary"]) == ("gzip", "Accept-Encoding")
        content = await answer.read()
        digest = base64.b64encode(hashlib.sha384(content).digest()).decode()
        assert hashes[url] == f"sha384-{digest}"
        loaded.add(url)
        folder, _, name = url.rpartition("/")
        assert content == (SOURCES / name).read_bytes()
        imported = re.findall(r'(?:^import .* from |\bimport\()"\./(.+?)"', content.decode(), re.MULTILINE)
        waiting += {f"{folder}/{name}" for name in imported} - loaded
    assert len(loaded) == 6
    assert len(hashes) >= len(loaded)


async def npm(folder: Path, *arguments: str) -> Any:
    """The JSON that npm prints; it reaches no registry."""
    assert NPM is not None, "npm is missing"
    process = await asyncio.create_subprocess_exec(
        NPM, *arguments, "--json", "--registry=http://127.0.0.1:1", "--no-audit", f"--cache={folder / 'cache'}",
        cwd=folder, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    printed, _ = await process.communicate()
    assert process.returncode == 0, printed.decode()
    return json.loads(printed)


@needs_npm
async def test_npm_installs_what_it_would_pack(site: Site, tmp_path: Path) -> None:
    (url,) = re.findall(r"npm install ([^\s<]+)", await first_steps(site))
    (tmp_path / "package.json").write_text("{}")
    await npm(tmp_path, "install", url)
    (packed,) = await npm(tmp_path, "pack", str(SOURCES), "--dry-run")
    installed = tmp_path / "node_modules" / "svc-js"
    assert {path.name: path.read_bytes() for path in installed.iterdir()} == {
        file["path"]: (SOURCES / file["path"]).read_bytes() for file in packed["files"]
    }
    lock = json.loads((tmp_path / "package-lock.json").read_text())["packages"]["node_modules/svc-js"]
    content = await (await site.client.get(urlsplit(url).path)).read()
    assert lock["integrity"] == f"sha512-{base64.b64encode(hashlib.sha512(content).digest()).decode()}"
