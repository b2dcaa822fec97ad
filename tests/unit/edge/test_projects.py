"""The project directory: its answers before and after the topic has been read, and the snapshot between."""

import asyncio
from pathlib import Path

import pytest

from edge.http.authentication import authenticate
from edge.project_snapshot import ProjectSnapshot
from edge.request_errors import RequestError
from schemas.errors import WireError
from schemas.ids import new_token
from schemas.projects import Project, Token, encode_project
from tests.eventually import eventually

MOMENT = "2026-01-01T00:00:00.000Z"


def project(number: str = "1") -> Project:
    return Project(id=number, name="shop", created_at=MOMENT, tokens=(Token(new_token(), MOMENT),))


def put(directory: ProjectSnapshot, given: Project) -> str:
    directory.apply(given.id.encode(), encode_project(given))
    return given.tokens[0].token


async def saved(directory: ProjectSnapshot, path: Path) -> None:
    keeping = asyncio.create_task(directory.save_changes())
    await eventually(path.exists)
    keeping.cancel()
    await asyncio.wait([keeping])


def fault(token: str, directory: ProjectSnapshot) -> WireError:
    with pytest.raises(RequestError) as caught:
        authenticate(f"Bearer {token}", directory)
    return caught.value.error


def test_nothing_is_known_until_the_topic_has_been_read(tmp_path: Path) -> None:
    directory = ProjectSnapshot(tmp_path / "p.json")
    token = put(directory, project())
    assert not directory.health().ok
    assert fault(token, directory) is WireError.UNAVAILABLE
    directory.set_current()
    assert authenticate(f"Bearer {token}", directory)[1].id == "1"
    assert directory.health().ok
    assert fault(new_token(), directory) is WireError.UNAUTHORIZED


def test_token_that_may_be_newer_than_the_known_ones_is_not_unauthorized(tmp_path: Path) -> None:
    """After an outage of Kafka, events of a token created meanwhile must not be refused for good."""
    directory = ProjectSnapshot(tmp_path / "p.json")
    directory.set_current()
    known, age = put(directory, project()), 0.0
    directory.age = lambda: age
    for age, answer in (
        (9.0, WireError.UNAUTHORIZED),
        (11.0, WireError.UNAVAILABLE),
        (1.0, WireError.UNAUTHORIZED),
    ):
        assert fault(new_token(), directory) is answer
        assert fault("svc_pk_x", directory) is WireError.UNAUTHORIZED
        assert authenticate(f"Bearer {known}", directory)[1].id == "1"
        assert directory.health().ok
        assert ("11 s ago" in directory.health().detail) == (age > 10)


async def test_snapshot_serves_known_tokens_and_has_no_opinion_on_others(tmp_path: Path) -> None:
    path = tmp_path / "edge" / "p.json"
    first = ProjectSnapshot(path)
    token = put(first, project())
    await saved(first, path)
    second = ProjectSnapshot(path)
    second.load()
    assert authenticate(f"Bearer {token}", second)[1].id == "1"
    assert fault(new_token(), second) is WireError.UNAVAILABLE
    assert second.health().ok
    assert "snapshot" in second.health().detail


async def test_project_that_was_removed_meanwhile_is_forgotten_with_the_snapshot(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    first = ProjectSnapshot(path)
    token = put(first, project())
    await saved(first, path)
    second = ProjectSnapshot(path)
    second.load()
    put(second, project("2"))
    second.set_current()
    assert fault(token, second) is WireError.UNAUTHORIZED


def test_damaged_snapshot_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    path.write_bytes(b'[{"id":')
    directory = ProjectSnapshot(path)
    directory.load()
    assert not directory.known
