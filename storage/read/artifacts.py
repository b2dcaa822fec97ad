"""Reads of uploaded source maps and mappings, and of the events of which they resolve the frames."""

from collections.abc import Sequence
from typing import Final

from schemas.read_api import Artifact, ArtifactLink
from schemas.times import iso
from storage.read.events.payloads import stored_payloads
from storage.read.issue_rows import issue_number
from storage.read.query.question import Statement
from storage.read.reader import ReadCall, Session

_CURRENT: Final = "deleted = 0 AND expires > now()"


class HasArtifacts(ReadCall[bool], frozen=True):
    """Whether a project has any."""

    project: int

    async def fetch(self, session: Session) -> bool:
        statement = _statement(session, self.project)
        text = f"SELECT 1 FROM artifact_links WHERE {statement.project} AND {_CURRENT} LIMIT 1"
        return bool(await session.rows(statement.ready(text)))


class FindArtifacts(ReadCall[list[ArtifactLink]], frozen=True):
    """The maps of files with these names, in any release, and the mappings of one release, the newest first."""

    project: int
    release: str
    names: Sequence[str]

    async def fetch(self, session: Session) -> list[ArtifactLink]:
        statement = _statement(session, self.project)
        names = statement.parameters.add(list(self.names), "Array(String)")
        release = statement.parameters.add(self.release, "String")
        rows = await session.rows(
            statement.ready(
                f"SELECT release, path, kind, digest FROM artifact_links FINAL WHERE {statement.project}"
                f" AND {_CURRENT} AND (kind = 'r8' AND release = {release}"
                f" OR kind != 'r8' AND splitByChar('/', path)[-1] IN {names}) ORDER BY uploaded DESC"
            )
        )
        return [ArtifactLink(*row) for row in rows]


class ListArtifacts(ReadCall[list[Artifact]], frozen=True):
    """All maps of a project, or those of a release, of a path: the newest release first."""

    project: int
    release: str = ""
    path: str = ""

    async def fetch(self, session: Session) -> list[Artifact]:
        statement = _statement(session, self.project)
        wanted = {"release": self.release, "path": self.path}
        of = "".join(
            f" AND {column} = {statement.parameters.add(value, 'String')}"
            for column, value in wanted.items()
            if value
        )
        rows = await session.rows(
            statement.ready(
                "SELECT release, path, kind, debug_id, size, stored, toUnixTimestamp64Milli(uploaded),"
                " toInt64(toUnixTimestamp(expires)) * 1000, digest,"
                " max(uploaded) OVER (PARTITION BY release) AS latest"
                f" FROM artifact_links FINAL WHERE {statement.project} AND {_CURRENT}{of}"
                " ORDER BY latest DESC, release, path"
            )
        )
        return [
            Artifact(
                release=release,
                path=path,
                kind=kind,
                debug_id=debug_id,
                bytes=size,
                stored_bytes=stored,
                uploaded_at=iso(uploaded),
                expires_at=iso(expires),
                digest=digest,
            )
            for release, path, kind, debug_id, size, stored, uploaded, expires, digest, _ in rows
        ]


class GetArtifact(ReadCall[bytes], frozen=True):
    """The content of a map, compressed; empty if it is gone."""

    project: int
    digest: str

    async def fetch(self, session: Session) -> bytes:
        statement = _statement(session, self.project)
        text = (
            f"SELECT content FROM artifacts WHERE {statement.project}"
            f" AND digest = {statement.parameters.add(self.digest, 'String')} ORDER BY version DESC LIMIT 1"
        )
        rows = await session.rows(statement.ready(text, raw=("content",)))
        return bytes(rows[0][0]) if rows else b""


class GetLastPayloads(ReadCall[dict[str, bytes]], frozen=True):
    """The newest event of each of some issues, as it was sent; without those that aren't stored."""

    project: int
    issues: Sequence[str]

    async def fetch(self, session: Session) -> dict[str, bytes]:
        question = session.question_ever(self.project)
        statement = question.statement()
        numbers = {issue_number(issue): issue for issue in self.issues}
        rows = await session.rows(
            statement.ready(
                f"SELECT issue_id, last_event FROM issues FINAL WHERE {statement.project}"
                f" AND issue_id IN {statement.numbers(list(numbers))} AND deleted = 0"
            )
        )
        payloads = await stored_payloads(session, question, [event for _, event in rows]) if rows else {}
        return {numbers[issue]: payloads[event] for issue, event in rows if payloads.get(event)}


def _statement(session: Session, project: int) -> Statement:
    return session.question_ever(project).statement()
