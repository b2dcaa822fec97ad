"""The spool on a disk that refuses writes.

Nothing that was promised is lost. Until there is room, nothing is promised, and every client is told.
"""

import asyncio
import random
from io import FileIO
from pathlib import Path

import pytest

from edge.delivery import segments
from edge.delivery.spool import Spool, SpoolFull
from tests.eventually import eventually
from tests.file_limit import files_end_at, in_a_process

GB = 1 << 30


async def stored(spool: Spool) -> list[bytes]:
    found: list[bytes] = []
    while (segment := await spool.seal_oldest()) is not None:
        contents = segments.read(segment)
        assert contents.damaged == 0
        found += contents.records
        await spool.remove(segment)
    return found


async def fill(spool: Spool, chance: random.Random) -> list[bytes]:
    """Events accepted until the first refusal, of several concurrent writers."""
    promised: list[bytes] = []
    refused = False

    async def put(record: bytes) -> None:
        nonlocal refused
        try:
            await spool.append(record)
            promised.append(record)
        except SpoolFull:
            refused = True

    while not refused:
        records = [chance.randbytes(chance.randint(1, 12_000)) for _ in range(3)]
        await asyncio.gather(*map(put, records))
    return promised


def fill_files_of(directory: str, seed: int) -> tuple[list[bytes], list[bytes]]:
    """Accepted and stored events of three segments that each could not be finished."""

    async def run() -> tuple[list[bytes], list[bytes]]:
        chance = random.Random(seed)
        spool = Spool(Path(directory), GB, 3600)
        promised: list[bytes] = []
        with files_end_at(50_000 + chance.randrange(50_000)):
            for _ in range(3):
                promised += await fill(spool, chance)
        left = await stored(spool)
        await spool.stop()
        return promised, left

    return asyncio.run(run())


@pytest.mark.parametrize("seed", range(4))
def test_record_that_finds_no_room_costs_none_of_those_before_and_behind(tmp_path: Path, seed: int) -> None:
    promised, left = in_a_process(fill_files_of, str(tmp_path), seed)
    assert left == promised
    assert len(promised) > 3


def be_refused_often(directory: str) -> tuple[int, float]:
    async def run() -> tuple[int, float]:
        spool = Spool(Path(directory), GB, 3600)
        with files_end_at(100):
            for _ in range(20):
                with pytest.raises(SpoolFull):
                    await spool.append(bytes(200))
        size, age = spool.size, spool.age_seconds
        assert await spool.seal_oldest() is None
        await spool.stop()
        return size, age

    return asyncio.run(run())


def test_tries_that_failed_leave_no_files_and_no_age(tmp_path: Path) -> None:
    assert in_a_process(be_refused_often, str(tmp_path)) == (0, 0.0)
    assert list(tmp_path.iterdir()) == []


def fill_and_make_room(directory: str) -> list[bool]:
    async def run() -> list[bool]:
        spool = Spool(Path(directory), GB, 3600)
        fulls = [spool.full]
        with files_end_at(100):
            await spool.append(b"small")
            fulls.append(spool.full)
            with pytest.raises(SpoolFull):
                await spool.append(bytes(5000))
            fulls.append(spool.full)
        await eventually(lambda: not spool.full, 60)
        await spool.append(bytes(5000))
        assert await stored(spool) == [b"small", bytes(5000)]
        await spool.stop()
        return fulls

    return asyncio.run(run())


def test_spool_is_full_while_the_disk_refuses_and_sees_by_itself_that_there_is_room(tmp_path: Path) -> None:
    assert in_a_process(fill_and_make_room, str(tmp_path)) == [False, False, True]


def fill_and_write_less(directory: str) -> list[bool]:
    async def run() -> list[bool]:
        spool = Spool(Path(directory), GB, 3600)
        with files_end_at(100):
            with pytest.raises(SpoolFull):
                await spool.append(bytes(5000))
            fulls = [spool.full]
            await spool.append(b"small")
            fulls.append(spool.full)
            with pytest.raises(SpoolFull):
                await spool.append(bytes(5000))
            # Stopped while it looks for room.
            await spool.stop()
        return fulls

    return asyncio.run(run())


def test_spool_is_not_full_any_more_once_the_disk_has_taken_a_record(tmp_path: Path) -> None:
    assert in_a_process(fill_and_write_less, str(tmp_path)) == [True, False]


def cut_short(path: str) -> tuple[int, int]:
    with files_end_at(1000):
        with FileIO(path, "x") as file, pytest.raises(OSError, match="too large"):
            segments.write_all(file, bytes(range(256)) * 8)
        at_refusal = Path(path).stat().st_size
    return at_refusal, Path(path).stat().st_size


def test_nothing_is_written_behind_a_refusal(tmp_path: Path) -> None:
    assert in_a_process(cut_short, str(tmp_path / "file")) == (1000, 1000)


async def test_segment_that_can_not_be_removed_is_forgotten_until_the_next_start(tmp_path: Path) -> None:
    spool = Spool(tmp_path, GB, 3600)
    await spool.append(b"first")
    segment = await spool.seal_oldest()
    assert segment is not None
    segment.unlink()
    segment.mkdir()
    await spool.remove(segment)
    assert spool.size == 0
    assert await spool.seal_oldest() is None
    await spool.append(b"second")
    segment.rmdir()
    assert await stored(spool) == [b"second"]
    await spool.stop()
