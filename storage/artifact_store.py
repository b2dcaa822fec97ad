"""Stores uploaded source maps: the content, and the file of the release that it is for.

On several servers all are on the first one, and the readers read them over all servers.
"""

import asyncio
import time
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

from schemas.errors import ChangesUnavailable
from schemas.read_api import Artifact
from schemas.times import parse_iso
from storage.client import ClickHouseError, open_client

_COLUMNS: Final = {
    "artifacts": ("project_id", "digest", "content", "version", "expires"),
    "artifact_links": (
        *("project_id", "release", "path", "kind", "debug_id", "digest", "size", "stored", "uploaded"),
        *("version", "deleted", "expires"),
    ),
}


class ArtifactStore:
    """Inserts into ClickHouse; `urls` are the replicas of the first server, with a user who may insert.

    Whoever changes maps by what is there holds `turn`.
    """

    def __init__(self, urls: Sequence[str]) -> None:
        self._urls = urls
        self.turn = asyncio.Lock()

    async def put(
        self, project: int, artifact: Artifact, content: bytes, unused: Collection[Artifact] = ()
    ) -> None:
        """Store a map with its compressed content in place of that of the same file, whose content may be `unused`.

        Raises ChangesUnavailable.
        """
        version, expires = time.time_ns(), parse_iso(artifact.expires_at) // 1000
        contents = [[project, artifact.digest, content, version, expires]]
        links = [_link(project, artifact, version, expires)]
        await self._insert(
            ("artifacts", contents), ("artifact_links", links), _emptied(project, unused, version)
        )

    async def delete(
        self, project: int, artifacts: Collection[Artifact], unused: Collection[Artifact]
    ) -> None:
        """Delete maps, and the contents of the `unused` ones. Raises ChangesUnavailable."""
        version, expires = time.time_ns(), _last(artifacts)
        links = [_link(project, one, version, expires, deleted=1) for one in artifacts]
        await self._insert(("artifact_links", links), _emptied(project, unused, version))

    async def _insert(self, *inserts: tuple[str, list[list[Any]]]) -> None:
        """Content before the link to it, and what is gone after that: a link never leads nowhere."""
        try:
            await asyncio.to_thread(self._insert_now, inserts)
        except ClickHouseError as error:
            raise ChangesUnavailable(
                f"source maps can't be stored: {' '.join(str(error).split())}"
            ) from error

    def _insert_now(self, inserts: Iterable[tuple[str, list[list[Any]]]]) -> None:
        client = self._open()
        try:
            for table, rows in inserts:
                if rows:
                    client.insert(table, rows, column_names=_COLUMNS[table])
        finally:
            client.close()

    def _open(self) -> Any:
        for url in self._urls[:-1]:
            try:
                return open_client(url)
            except ClickHouseError:
                continue
        return open_client(self._urls[-1])


def _link(project: int, one: Artifact, version: int, expires: int, deleted: int = 0) -> list[Any]:
    return [
        *(project, one.release, one.path, one.kind, one.debug_id, one.digest, one.bytes, one.stored_bytes),
        *(parse_iso(one.uploaded_at), version, deleted, expires),
    ]


def _emptied(project: int, unused: Collection[Artifact], version: int) -> tuple[str, list[list[Any]]]:
    expires = _last(unused)
    return "artifacts", [
        [project, digest, b"", version, expires] for digest in {one.digest for one in unused}
    ]


def _last(artifacts: Iterable[Artifact]) -> int:
    """When the last of them expires: what says that a row is gone must not be gone before it."""
    return max((parse_iso(one.expires_at) // 1000 for one in artifacts), default=0)
