"""Source maps and mappings of R8: upload, list, delete."""

import time
from typing import Annotated, Final

from msgspec import Meta, Struct

from control.change_log import change_of
from dashboard.api.operation import Call, NoInput, operation
from dashboard.auth.access import Role
from dashboard.dependencies import State
from dashboard.http.http_errors import HttpError, invalid, not_found, unavailable
from dashboard.http.inputs import is_text
from dashboard.http.multipart import UploadedFile
from schemas.change_records import Author, ChangeKind
from schemas.errors import Detail, WireError
from schemas.issues import encode_json
from schemas.projects import Project
from schemas.read_api import Artifact
from schemas.times import DAY_MS, iso
from sourcemaps.matching import file_path
from sourcemaps.worker_messages import Checked, NotUsable, Upload
from storage.artifact_store import ArtifactStore
from storage.read.artifacts import ListArtifacts

MAX_BYTES: Final = 50 << 20
"""Of a map, and of the file that it is of."""
MAX_ARTIFACTS: Final = 10_000
"""Of a project."""
_MAP, _SCRIPT = "map", "file"

Release = Annotated[str, Meta(max_length=1_000, description="the release of the events")]
Path = Annotated[
    str, Meta(max_length=1_000, description="the built file's path, as in frames or the end of it")
]


class ArtifactQuery(Struct, frozen=True, omit_defaults=True):
    """A release, and a file of it."""

    release: Release = ""
    path: Path = ""


class ArtifactList(Struct, frozen=True, rename="camel"):
    """Maps, the newest release first, their compressed bytes, and those that the project may have."""

    artifacts: list[Artifact]
    stored_bytes: int
    most_bytes: int


class Deleted(Struct, frozen=True):
    """How many maps were deleted."""

    deleted: int


async def artifact_list(state: State, project: Project, release: str = "", path: str = "") -> ArtifactList:
    """The maps of a project, of a release, or of one of its files. A content of several files counts once."""
    found = await state.dependencies.reader.read(ListArtifacts(project.number, release, path))
    stored = {one.digest: one.stored_bytes for one in found}
    return ArtifactList(found, sum(stored.values()), state.settings.source_map_megabytes * 1_000_000)


async def delete_artifacts(
    state: State, project: Project, author: Author, release: str, path: str = ""
) -> int:
    """Delete the maps of a release, or the one of a file. Raises HttpError if there is none, and if it can't."""
    store = _store(state)
    async with store.turn:
        found = await state.dependencies.reader.read(ListArtifacts(project.number))
        removed = [one for one in found if one.release == release and path in ("", one.path)]
        if not removed:
            raise not_found("there is no such source map")
        await _record(state, project, "sourceMapsDeleted", author, ArtifactQuery(release, path))
        kept = {one.digest for one in found if one not in removed}
        await store.delete(project.number, removed, [one for one in removed if one.digest not in kept])
    state.resolver.forget(project.number)
    return len(removed)


@operation("GET", "/projects/{project}/artifacts", Role.VIEWER, of_uploads=True)
async def _list(call: Call[ArtifactQuery, NoInput]) -> ArtifactList:
    """The source maps of a project."""
    return await artifact_list(call.state, call.project(), call.query.release, _path(call.query))


@operation(
    "PUT",
    "/projects/{project}/artifacts",
    Role.ADMIN,
    errors=(WireError.CONFLICT,),
    files=(_MAP, _SCRIPT),
    of_uploads=True,
)
async def _upload(call: Call[ArtifactQuery, NoInput]) -> Artifact:
    """Upload the source map of a built file, or a mapping of R8, for a release."""
    state, project, query = call.state, call.project(), call.query
    path = file_path(query.path)
    for name, value in (("release", query.release), ("path", path)):
        if not value.strip() or not is_text(value):
            raise invalid(name, "is required")
    store = _store(state)
    async with state.resolver.uploading:
        checked, size = await _checked(call, path)
        async with store.turn:
            artifact = await _stored(call, store, path, checked, size)
    state.resolver.forget(project.number)
    return artifact


async def _stored(
    call: Call[ArtifactQuery, NoInput], store: ArtifactStore, path: str, checked: Checked, size: int
) -> Artifact:
    """The map, which takes the place of that of the same file. Raises HttpError if the project is full."""
    state, project, query = call.state, call.project(), call.query
    known = await artifact_list(state, project)
    others = [one for one in known.artifacts if (one.release, one.path) != (query.release, path)]
    if len(others) >= MAX_ARTIFACTS:
        raise _full(f"the project has {MAX_ARTIFACTS:,} source maps: delete those of old releases")
    stored = {one.digest: one.stored_bytes for one in others} | {checked.digest: len(checked.content)}
    if sum(stored.values()) > known.most_bytes:
        raise _full(
            f"the project has its {known.most_bytes // 1_000_000:,} MB of source maps: delete old releases"
        )
    now_ms = time.time_ns() // 1_000_000
    days = max(state.settings.source_map_days, project.retention_days)
    artifact = Artifact(
        release=query.release,
        path=path,
        kind=checked.kind,
        debug_id=checked.debug_id,
        digest=checked.digest,
        bytes=size,
        stored_bytes=len(checked.content),
        uploaded_at=iso(now_ms),
        # To the second, as it is stored.
        expires_at=iso((now_ms + days * DAY_MS) // 1000 * 1000),
    )
    if all(one.release != query.release for one in known.artifacts):
        # Once for a release, which may have hundreds of files.
        await _record(state, project, "sourceMapsUploaded", call.author, ArtifactQuery(query.release))
    unused = [one for one in known.artifacts if one.digest not in stored]
    await store.put(project.number, artifact, checked.content, unused)
    return artifact


async def _checked(call: Call[ArtifactQuery, NoInput], path: str) -> tuple[Checked, int]:
    """The upload's map, and the bytes that were sent. Raises HttpError for one that can't be used."""
    files = await call.files((_MAP, _SCRIPT), MAX_BYTES)
    if _MAP not in files:
        raise invalid(_MAP, "the part with the source map is missing")
    given, script = files[_MAP], files.get(_SCRIPT, UploadedFile()).content
    checked = await call.state.resolver.check(Upload(path, given.name, given.content, script))
    if isinstance(checked, NotUsable):
        raise invalid(_MAP, checked.reason)
    return checked, len(given.content) + len(script)


@operation("DELETE", "/projects/{project}/artifacts", Role.ADMIN, of_uploads=True)
async def _delete(call: Call[ArtifactQuery, NoInput]) -> Deleted:
    """Delete the source maps of a release, or of one of its files."""
    project = call.project()
    if not call.query.release:
        raise invalid("release", "is required")
    return Deleted(
        await delete_artifacts(call.state, project, call.author, call.query.release, _path(call.query))
    )


def _path(query: ArtifactQuery) -> str:
    """As it is stored; one that no file has stays."""
    return file_path(query.path) or query.path


async def _record(
    state: State, project: Project, kind: ChangeKind, author: Author, changed: ArtifactQuery
) -> None:
    """Raises ProjectsUnavailable."""
    change = change_of(kind, author, state.dependencies.now_ms(), project.id, encode_json(changed).decode())
    await state.dependencies.projects.record(change)


def _store(state: State) -> ArtifactStore:
    if state.dependencies.artifacts is None:
        raise unavailable("source maps can't be stored here: the dashboard needs SVC_CLICKHOUSE_URL")
    return state.dependencies.artifacts


def _full(sentence: str) -> HttpError:
    return HttpError(WireError.CONFLICT, [Detail(_MAP, sentence)], sentence=sentence)


OPERATIONS = (_list, _upload, _delete)
