import asyncio
import base64
import csv
import hashlib
import io
import re
import sys
import zipfile
from pathlib import Path
from urllib.parse import urlsplit

from packaging.utils import parse_wheel_filename

import svc
from tests.unit.dashboard.site import Site

SOURCES = Path(svc.__file__).parent


async def test_pip_installs_the_library_that_the_first_steps_name(site: Site, tmp_path: Path) -> None:
    await site.sign_in()
    page = await (await site.client.get(f"/projects/{site.project.id}/settings")).text()
    (url,) = re.findall(r"pip install (\S+)", page)
    assert url.startswith(str(site.client.make_url("/libraries/")))
    site.client.session.cookie_jar.clear()
    answer = await site.client.get(urlsplit(url).path)
    wheel = await answer.read()
    assert answer.headers["Content-Type"] == "application/zip"
    assert answer.headers["Cache-Control"] == "public, max-age=31536000, immutable"
    assert hashlib.sha256(wheel).hexdigest() in page
    pip = [
        sys.executable,
        "-P",
        "-m",
        "pip",
        "--isolated",
        "--quiet",
        "--disable-pip-version-check",
        "install",
    ]
    installing = await asyncio.create_subprocess_exec(
        *pip, "--no-index", "--no-cache-dir", "--no-compile", "--target", tmp_path, url
    )
    assert await installing.wait() == 0
    installed = {path.name: path.read_bytes() for path in (tmp_path / "svc").iterdir()}
    assert installed == {
        path.name: path.read_bytes() for path in (*SOURCES.glob("*.py"), SOURCES / "py.typed")
    }


async def test_the_wheel_keeps_its_format(site: Site) -> None:
    name = f"svc_reporting-{svc.__version__}-py3-none-any.whl"
    assert str(parse_wheel_filename(name)[1]) == svc.__version__
    wheel = await (await site.client.get(f"/libraries/{name}")).read()
    with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    folder = f"svc_reporting-{svc.__version__}.dist-info"
    rows = csv.reader(files.pop(f"{folder}/RECORD").decode().splitlines())
    recorded = {name: (digest, size) for name, digest, size in rows}
    assert recorded.pop(f"{folder}/RECORD") == ("", "")
    assert recorded == {
        name: (
            "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("="),
            str(len(content)),
        )
        for name, content in files.items()
    }
    assert b"Tag: py3-none-any" in files[f"{folder}/WHEEL"]
    metadata = files[f"{folder}/METADATA"].decode()
    assert f"Name: svc-reporting\nVersion: {svc.__version__}\n" in metadata


async def test_no_other_library_is_served(site: Site) -> None:
    for name in ("", "svc_service-0.2.0-py3-none-any.whl"):
        assert (await site.client.get(f"/libraries/{name}")).status == 404
