"""The disk spool: order, limits, torn ends, and who may have a folder."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from edge.delivery import segments as files
from edge.delivery.quarantine import quarantined_bytes
from edge.delivery.spool import SEGMENT_BYTES, Spool, SpoolFull
from edge.delivery.worker_folder import WorkerFolder

MB = 1 << 20


def records(segment: Path) -> list[bytes]:
    return files.read(segment).records


def segments(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.spool"))


async def everything(spool: Spool) -> list[bytes]:
    """Drain the spool as its reader does."""
    found: list[bytes] = []
    while (segment := await spool.seal_oldest()) is not None:
        found += records(segment)
        await spool.remove(segment)
    return found


async def test_record_that_was_acknowledged_survives_kill_9(tmp_path: Path) -> None:
    program = (
        "import asyncio, os, sys\nfrom pathlib import Path\nfrom edge.delivery.spool import Spool\n"
        "async def main():\n    spool = Spool(Path(sys.argv[1]), 1 << 20, 3600)\n"
        "    for n in range(100):\n        await spool.append(b'%d' % n)\n    os.kill(os.getpid(), 9)\n"
        "asyncio.run(main())\n"
    )
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-P", "-c", program, str(tmp_path)],
        cwd=Path(__file__).parents[4],
        check=False,
    )
    assert done.returncode == -9
    spool = Spool(tmp_path, MB, 3600)
    assert spool.has_segments.is_set()
    await spool.append(b"100")
    assert await everything(spool) == [b"%d" % n for n in range(101)]
    await spool.stop()


async def test_empty_record_is_refused_because_it_would_read_as_a_hole(tmp_path: Path) -> None:
    spool = Spool(tmp_path, MB, 3600)
    with pytest.raises(ValueError, match="empty"):
        await spool.append(b"")
    assert (spool.size, segments(tmp_path)) == (0, [])
    await spool.stop()


async def test_file_that_is_no_segment_is_let_be(tmp_path: Path) -> None:
    (tmp_path / "notes.spool").write_bytes(b"?")
    (tmp_path / "000000000001-0000000000001.spool.damaged").write_bytes(b"?")
    spool = Spool(tmp_path, MB, 3600)
    assert spool.size == 0
    assert await spool.seal_oldest() is None
    await spool.stop()


async def test_full_spool_refuses_and_takes_again_when_drained(tmp_path: Path) -> None:
    spool = Spool(tmp_path, 1000, 3600)
    for _ in range(10):
        await spool.append(b"x" * 92)
    assert spool.full
    with pytest.raises(SpoolFull):
        await spool.append(b"x" * 92)
    assert len(await everything(spool)) == 10
    await spool.append(b"x" * 92)
    await spool.stop()


async def test_spool_that_is_too_old_refuses(tmp_path: Path) -> None:
    now = 1_000_000.0
    spool = Spool(tmp_path, MB, 3600, lambda: now)
    await spool.append(b"x")
    assert spool.age_seconds == 0
    now += 3601
    assert spool.age_seconds == 3601
    with pytest.raises(SpoolFull):
        await spool.append(b"y")
    await spool.stop()


async def test_disk_that_refuses_is_reported_and_accepted_events_stay(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool", MB, 3600)
    (tmp_path / "spool").mkdir()
    await spool.append(b"kept")
    (segment,) = segments(tmp_path / "spool")
    assert await spool.seal_oldest() == segment
    (tmp_path / "spool").rename(tmp_path / "away")
    with pytest.raises(SpoolFull):
        await spool.append(b"lost")
    (tmp_path / "away").rename(tmp_path / "spool")
    size = spool.size
    await spool.append(b"next")
    assert spool.size > size
    assert await everything(spool) == [b"kept", b"next"]
    await spool.stop()


async def test_segments_are_cut_and_drained_oldest_first(tmp_path: Path) -> None:
    spool = Spool(tmp_path, 5 * SEGMENT_BYTES, 3600)
    block = 3 * MB
    for n in range(6):
        await spool.append(b"%d" % n * block)
    assert len(segments(tmp_path)) == 2
    assert [record[:1] for record in await everything(spool)] == [b"%d" % n for n in range(6)]
    await spool.stop()


def test_each_worker_gets_its_own_folder_and_a_freed_one_is_reused(tmp_path: Path) -> None:
    first, second = WorkerFolder(tmp_path), WorkerFolder(tmp_path)
    assert (first.number, second.number) == (0, 1)
    first.release()
    third = WorkerFolder(tmp_path)
    assert third.number == 0
    second.release()
    third.release()


async def test_orphans_are_adopted_behind_one_s_own_and_living_neighbours_left_alone(tmp_path: Path) -> None:
    slots = [WorkerFolder(tmp_path) for _ in range(3)]
    for slot in slots:
        spool = Spool(slot.directory, MB, 3600)
        await spool.append(b"of %d" % slot.number)
        await spool.stop()
    slots[2].release()
    slots[0].adopt_orphans()
    spool = Spool(slots[0].directory, MB, 3600)
    assert await everything(spool) == [b"of 0", b"of 2"]
    assert len(segments(slots[1].directory)) == 1
    await spool.stop()
    for slot in slots[:2]:
        slot.release()


def test_segments_quarantined_by_a_dead_worker_are_reported_by_its_heir(tmp_path: Path) -> None:
    names = [
        "000000000001-0000000000001.spool.damaged",
        "000000000002-0000000000001.spool.too-large.replayed",
    ]
    (tmp_path / "7").mkdir()
    for name in names:
        (tmp_path / "7" / name).write_bytes(b"theirs")
    heir = WorkerFolder(tmp_path)
    (heir.directory / names[0]).write_bytes(b"own")
    heir.adopt_orphans()
    assert (heir.directory / names[0]).read_bytes() == b"own"
    assert (tmp_path / "7" / names[0]).read_bytes() == b"theirs"
    assert (heir.directory / names[1]).read_bytes() == b"theirs"
    assert quarantined_bytes(heir.directory) == len(b"own" + b"theirs")
    heir.release()
