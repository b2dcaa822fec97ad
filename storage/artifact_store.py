"""Stores uploaded source maps: the content, and the file of the release that it is for.

On several servers all are on the first one, and the readers read them over all servers.
"""

import asyncio
import time
from collections.abc import Iterable, Sequence
from typing import Any, Final

from schemas.errors import ChangesUnavailable
from schemas.read_api import Artifact
from schemas.times import parse_iso
from storage.client import ClickHouseError, open_client

_CONTENT: Final = ("project_id", "digest", "content", "version", "expires")
_LINK: Final = (
    *("project_id", "release", "path", "kind", "debug_id", "digest", "size", "stored", "uploaded"),
    *("version", "deleted", "expires"),
)
_DAY_SECONDS: Final = 86_400


class ArtifactStore:
    """Inserts into ClickHouse; `urls` are the replicas of the first server, with a user who may insert."""

    def __init__(self, urls: Sequence[str]) -> None:
        self._urls = urls

    async def put(self, project: int, artifact: Artifact, content: bytes) -> None:
        """Store a map with its compressed content, in place of that of the same file. Raises ChangesUnavailable."""
        uploaded, version = parse_iso(artifact.uploaded_at), time.time_ns()
        expires = parse_iso(artifact.expires_at) // 1000
        link = [
            *(project, artifact.release, artifact.path, artifact.kind, artifact.debug_id, artifact.digest),
            *(artifact.bytes, artifact.stored_bytes, uploaded, version, 0, expires),
        ]
        await self._insert([[project, artifact.digest, content, version, expires]], [link])

    async def delete(self, project: int, artifacts: Iterable[Artifact], kept: Iterable[Artifact]) -> None:
        """Delete maps, and their contents that none of the `kept` maps has. Raises ChangesUnavailable."""
        now = time.time_ns()
        expires = now // 1_000_000_000 + _DAY_SECONDS
        links = [
            [
                project,
                one.release,
                one.path,
                one.kind,
                "",
                one.digest,
                0,
                0,
                now // 1_000_000,
                now,
                1,
                expires,
            ]
            for one in artifacts
        ]
        orphans = {one.digest for one in artifacts} - {one.digest for one in kept}
        await self._insert([[project, digest, b"", now, expires] for digest in orphans], links)

    async def _insert(self, contents: list[list[Any]], links: list[list[Any]]) -> None:
        try:
            await asyncio.to_thread(self._insert_now, contents, links)
        except ClickHouseError as error:
            raise ChangesUnavailable(
                f"source maps can't be stored: {' '.join(str(error).split())}"
            ) from error

    def _insert_now(self, contents: list[list[Any]], links: list[list[Any]]) -> None:
        client = self._open()
        try:
            # The content first: a link never leads nowhere.
            if contents:
                client.insert("artifacts", contents, column_names=_CONTENT)
            client.insert("artifact_links", links, column_names=_LINK)
        finally:
            client.close()

    def _open(self) -> Any:
        for url in self._urls[:-1]:
            try:
                return open_client(url)
            except ClickHouseError:
                continue
        return open_client(self._urls[-1])
