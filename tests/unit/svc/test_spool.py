"""The queue on disk: nothing is lost with the process, nothing grows for ever."""

import os
from collections.abc import Callable
from pathlib import Path

import svc
from svc.spool import EventSpool
from tests.unit.svc.ingest import Ingest, Reply


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def opened(directory: Path, max_bytes: int = 10_000) -> EventSpool:
    spool = EventSpool(str(directory), max_bytes)
    assert spool.open()
    return spool


def test_stored_events_are_found_by_the_next_run_in_their_order(tmp_path: Path) -> None:
    spool = opened(tmp_path)
    for event_id in ("c", "a", "b"):
        assert spool.write(event_id, b'{"id":"%s"}' % event_id.encode())
    spool.remove(["b"])
    assert not spool.has_leftovers()
    again = opened(tmp_path)
    assert again.take_leftovers(1) == [("a", b'{"id":"a"}')]
    assert again.take_leftovers(9) == [("c", b'{"id":"c"}')]
    assert not again.has_leftovers()


def test_torn_and_foreign_files_do_no_harm(tmp_path: Path) -> None:
    spool = opened(tmp_path)
    spool.write("good", b'{"id":"good"}')
    (tmp_path / "torn.json").write_bytes(b'{"id":"torn","error":{"ty')
    (tmp_path / "empty.json").write_bytes(b"")
    (tmp_path / "other.json").write_bytes(b'{"id":"another"}')
    (tmp_path / "fresh.part").write_bytes(b'{"id":"fr')
    (tmp_path / "notes.txt").write_bytes(b"not ours")
    assert opened(tmp_path).take_leftovers(10) == [("good", b'{"id":"good"}')]
    assert names(tmp_path) == ["fresh.part", "good.json", "notes.txt"]


def test_irregular_files_are_ignored(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo.json")
    (tmp_path / "gone.json").symlink_to(tmp_path / "nowhere")
    spool = EventSpool(str(tmp_path), 1_000)
    assert spool.open()
    assert not spool.has_leftovers()


def test_directory_is_bounded(tmp_path: Path) -> None:
    spool = opened(tmp_path, max_bytes=100)
    assert [spool.write(str(n), b'{"id":"%d"}' % n + b" " * 31) for n in range(4)] == [
        True,
        True,
        False,
        False,
    ]
    spool.remove(["0"])
    assert spool.write("4", b"{}")
    assert opened(tmp_path, max_bytes=100).write("5", b"x" * 60) is False


def test_only_the_owner_may_read_the_events(tmp_path: Path) -> None:
    directory = tmp_path / "queue"
    opened(directory).write("a", b"{}")
    assert directory.stat().st_mode & 0o777 == 0o700
    assert (directory / "a.json").stat().st_mode & 0o777 == 0o600


def test_queue_dir_that_is_no_directory_is_logged(tmp_path: Path, start: Callable[..., Ingest]) -> None:
    (tmp_path / "file").write_text("")
    assert EventSpool(str(tmp_path / "file"), 100).open() is False
    ingest = start(queue_dir=str(tmp_path / "file"))
    svc.capture_exception(ValueError())
    assert svc.flush(10)
    assert len(ingest.events) == 1


def test_sent_event_leaves_the_directory(tmp_path: Path, start: Callable[..., Ingest]) -> None:
    start(queueDir=str(tmp_path), flush_interval=60)
    event_id = svc.capture_exception(ValueError())
    assert names(tmp_path) == [f"{event_id}.json"]
    assert svc.flush(10)
    assert names(tmp_path) == []


def test_refused_event_is_not_stored(tmp_path: Path, start: Callable[..., Ingest], ingest: Ingest) -> None:
    ingest.answers += [Reply(400, {"error": "validationFailed"})]
    start(queue_dir=str(tmp_path))
    svc.capture_exception(ValueError())
    assert svc.flush(10)
    assert names(tmp_path) == []
