"""`svc sourcemaps`: uploads the source maps of a build through the dashboard's API."""

import asyncio
import re
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import aiohttp
import click
from msgspec import Struct

from cli.command_groups import NearestGroup
from cli.console import settings_of
from cli.failures import BAD_SETTING_STATUS, fail
from cli.workspace import Workspace
from schemas.settings import UploadSettings

_SCRIPTS: Final = frozenset({".js", ".mjs", ".cjs", ".bundle", ".jsbundle"})
_MAP_URL: Final = re.compile(rb"//[#@] sourceMappingURL=([^\s'\"]+)")
_TAIL: Final = 4096
_MAPPING: Final = "mapping.txt"
_MAX_BYTES: Final = 50 << 20
_SECONDS: Final = 120
_OF_THE_FILE: Final = (400, 413)
_FAILURES: Final = {
    401: "the key or the password is wrong",
    403: "the key needs the scope artifacts",
    404: "the dashboard has no such project, or the key is for another one",
}


class BuiltFile(Struct, frozen=True):
    """A file of a build and its map; `script` is None where only the map is there."""

    path: str
    map: Path
    script: Path | None = None


def built_files(folder: Path) -> Iterator[BuiltFile]:
    """Scripts with their maps, maps without a script, and mappings of R8."""
    maps = {file.resolve(): file for file in folder.rglob("*.map") if file.is_file()}
    for script in sorted(file for file in folder.rglob("*") if file.suffix in _SCRIPTS and file.is_file()):
        named = script.parent / (_map_url(script) or f"{script.name}.map")
        if maps.pop(named.resolve(), None) is not None:
            yield BuiltFile(script.relative_to(folder).as_posix(), named, script)
    for alone in sorted(maps.values()):
        yield BuiltFile(alone.relative_to(folder).as_posix().removesuffix(".map"), alone)
    for mapping in sorted(folder.rglob(_MAPPING)):
        yield BuiltFile(mapping.relative_to(folder).as_posix(), mapping)


def _map_url(script: Path) -> str:
    with script.open("rb") as file:
        file.seek(max(0, script.stat().st_size - _TAIL))
        found = _MAP_URL.findall(file.read())
    url = unquote(found[-1].decode(errors="replace").partition("?")[0]) if found else ""
    return "" if url.startswith("data:") or "://" in url or "\0" in url else url


@click.group(cls=NearestGroup)
def sourcemaps() -> None:
    """Upload source maps and mappings of R8, so that stacks are shown as source."""


@sourcemaps.command()
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False), metavar="DIR")
@click.option("--release", required=True, help="The release that the application reports.")
@click.option("--project", required=True, type=int, help="The project's id (`svc projects list`).")
@click.option("--prefix", default="", help="Put before each path: `static/` if frames say `static/app.js`.")
@click.option(
    "--url", help="The dashboard's address; also SVC_DASHBOARD_URL, else that of the running `svc up`."
)
@click.pass_obj
def upload(
    workspace: Workspace, folder: Path, release: str, project: int, prefix: str, url: str | None
) -> None:
    """Upload the maps of the build in DIR; exits 1 if one is refused.

    It signs in with SVC_API_KEY, a key with the scope artifacts, or with SVC_ADMIN_PASSWORD.
    """
    settings = settings_of(workspace, UploadSettings)
    address = url or settings.dashboard_url
    if not address:
        raise click.UsageError("no dashboard: pass --url, or set SVC_DASHBOARD_URL")
    if not (settings.api_key or settings.admin_password):
        raise click.UsageError("no sign-in: set SVC_API_KEY or SVC_ADMIN_PASSWORD")
    files = list(built_files(folder))
    if not files:
        fail(f"{folder} has no source map and no {_MAPPING}", BAD_SETTING_STATUS)
    target = f"{address.rstrip('/')}/api/v1/projects/{project}/artifacts"
    if refused := asyncio.run(_upload_all(settings, target, release, prefix, files)):
        fail(f"{refused} of {len(files)} not uploaded")


async def _upload_all(
    settings: UploadSettings, target: str, release: str, prefix: str, files: list[BuiltFile]
) -> int:
    """Upload one after the other, with a line for each; returns how many were refused.

    Ends the command if it isn't the file's fault.
    """
    refused = 0
    authorization = (
        f"Bearer {settings.api_key}"
        if settings.api_key
        else aiohttp.encode_basic_auth("admin", settings.admin_password)
    )
    timeout = aiohttp.ClientTimeout(total=_SECONDS)
    async with aiohttp.ClientSession(headers={"Authorization": authorization}, timeout=timeout) as session:
        for file in files:
            try:
                problem = await _upload(session, target, release, prefix + file.path, file)
            except aiohttp.InvalidURL:
                raise click.UsageError(f"{target} is no address") from None
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                fail(f"{file.path} not uploaded: {str(error) or 'no answer in time'}")
            refused += bool(problem)
            click.echo(f"{file.path}: {problem or 'uploaded'}", err=bool(problem))
    return refused


async def _upload(
    session: aiohttp.ClientSession, target: str, release: str, path: str, file: BuiltFile
) -> str:
    """Why the server refused a map; empty if it took it."""
    form = aiohttp.FormData()
    parts = {"map": file.map} | ({"file": file.script} if file.script is not None else {})
    for name, part in parts.items():
        if part.stat().st_size > _MAX_BYTES:
            return f"{part.name} has more than {_MAX_BYTES >> 20} MB"
        content = BytesIO(part.read_bytes())
        form.add_field(name, content, filename=part.name, content_type="application/octet-stream")
    async with session.put(target, params={"release": release, "path": path}, data=form) as answer:
        if answer.status == 200:
            return ""
        try:
            body: dict[str, Any] = await answer.json()
        except (aiohttp.ContentTypeError, ValueError):
            body = {}
        details = "; ".join(detail["message"] for detail in body.get("details") or [])
        if answer.status not in _OF_THE_FILE or not details:
            known = _FAILURES.get(answer.status) or details or f"the dashboard answered {answer.status}"
            fail(f"{file.path} not uploaded: {known}")
        return details
