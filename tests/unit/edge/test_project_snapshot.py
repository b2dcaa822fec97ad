"""The snapshot of the projects on a disk that refuses it: tried again, and no reason to end."""

import asyncio
import logging
import os
from contextlib import suppress
from pathlib import Path

import pytest

from edge.project_snapshot import ProjectSnapshot
from schemas.projects import Project, encode_project
from tests.eventually import eventually


def with_project(snapshot: Path) -> ProjectSnapshot:
    directory = ProjectSnapshot(snapshot)
    project = Project(id="1", name="shop", created_at="2026-01-01T00:00:00.000Z")
    directory.apply(b"1", encode_project(project))
    return directory


def shown(snapshot: Path) -> bool:
    directory = ProjectSnapshot(snapshot)
    with suppress(FileNotFoundError):
        directory.load()
    return directory.known


async def test_snapshot_that_the_disk_refused_is_written_when_there_is_room(tmp_path: Path) -> None:
    snapshot = tmp_path / "p.json"
    begun = snapshot.with_suffix(f".{os.getpid()}")
    begun.symlink_to("/dev/full")
    keeping = asyncio.create_task(with_project(snapshot).save_changes())
    await eventually(lambda: keeping.done() or shown(snapshot), 60)
    assert not keeping.done()
    assert not begun.is_symlink()
    keeping.cancel()
    await asyncio.wait([keeping])


async def test_refusals_are_said_once_and_leave_nothing_behind(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "edge"
    folder.write_bytes(b"in the way")
    caplog.set_level(logging.WARNING)
    keeping = asyncio.create_task(with_project(folder / "p.json").save_changes())
    await eventually(lambda: keeping.done() or len(caplog.records) > 0, 60)
    folder.unlink()
    await eventually(lambda: keeping.done() or shown(folder / "p.json"), 60)
    assert not keeping.done()
    assert len(caplog.records) == 1
    keeping.cancel()
    await asyncio.wait([keeping])


def test_snapshot_that_can_not_be_read_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "p.json").mkdir()
    directory = ProjectSnapshot(tmp_path / "p.json")
    directory.load()
    assert not directory.known
