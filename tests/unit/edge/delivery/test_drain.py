"""The way out of the spool: a record that can't be read is kept, and holds up nothing behind it."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.delivery import segments
from edge.delivery.chunker import EventTuple
from edge.delivery.drain import drain_forever
from edge.delivery.quarantine import quarantined_in
from edge.delivery.spool import Spool, SpoolFull
from schemas.chunks import decode_chunk, encode_chunk
from schemas.ids import uuid7
from tests.eventually import eventually
from tests.unit.edge.delivery.memory_sink import MemorySink

FIRST = segments.name(1, 1.0)
SECOND = segments.name(2, 2.0)


def event() -> EventTuple:
    return 7, uuid7().bytes, 5, "a/1", b"payload"


def written(directory: Path, name: str, *records: bytes, tail: bytes = b"") -> Path:
    path = directory / name
    path.write_bytes(b"".join(map(segments.frame, records)) + tail)
    return path


@asynccontextmanager
async def draining(directory: Path) -> AsyncIterator[tuple[Spool, MemorySink]]:
    """A spool of the folder's segments, drained until it is empty."""
    spool, sink = Spool(directory, 1 << 30, 1e12), MemorySink(1)
    task = asyncio.create_task(drain_forever(spool, sink))
    try:
        await eventually(lambda: task.done() or not spool.has_segments.is_set(), 60)
        assert not task.done(), task.exception()
        yield spool, sink
    finally:
        task.cancel()
        await asyncio.wait([task])
        await spool.stop()


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def ids(sink: MemorySink) -> list[bytes]:
    return [event.id for record in sink.records for event in decode_chunk(record.value)]


@pytest.mark.parametrize("zeros", [8, 9, 4096])
async def test_zeros_behind_the_last_record_do_not_stop_the_drain(tmp_path: Path, zeros: int) -> None:
    one, two = event(), event()
    written(tmp_path, FIRST, encode_chunk([one]), tail=bytes(zeros))
    written(tmp_path, SECOND, encode_chunk([two]))
    async with draining(tmp_path) as (spool, sink):
        assert ids(sink) == [one[1], two[1]]
        assert spool.size == 0
        assert names(tmp_path) == [FIRST + ".unfinished"]


@pytest.mark.parametrize(
    "unreadable",
    [b"\x00", b"no chunk", encode_chunk([[1, 2, 3]]), encode_chunk([(7, b"short", 5, "a/1", b"payload")])],
)
async def test_record_that_is_no_chunk_is_kept_and_holds_up_nothing(
    tmp_path: Path, unreadable: bytes
) -> None:
    one, two, three = event(), event(), event()
    path = written(tmp_path, FIRST, encode_chunk([one]), unreadable, encode_chunk([two]))
    content = path.read_bytes()
    written(tmp_path, SECOND, encode_chunk([three]))
    async with draining(tmp_path) as (spool, sink):
        assert ids(sink) == [one[1], two[1], three[1]]
        assert spool.size == 0
        assert names(tmp_path) == [FIRST + ".damaged"]
        assert (tmp_path / (FIRST + ".damaged")).read_bytes() == content
    # The next start leaves it where it is.
    async with draining(tmp_path) as (spool, sink):
        assert (sink.records, spool.size) == ([], 0)


@pytest.mark.parametrize("cut", [1, 20, "whole record"])
async def test_tail_that_was_cut_off_behind_the_writer_s_back_is_damage(
    tmp_path: Path, cut: int | str
) -> None:
    one, two = event(), event()
    spool, sink = Spool(tmp_path, 1 << 30, 1e12), MemorySink(1)
    for each in (one, two):
        await spool.append(encode_chunk([each]))
    segment = await spool.seal_oldest()
    assert segment is not None
    left = segments.size_of(encode_chunk([one])) if isinstance(cut, str) else spool.size - cut
    os.truncate(segment, left)
    task = asyncio.create_task(drain_forever(spool, sink))
    await eventually(lambda: not spool.has_segments.is_set())
    assert ids(sink) == [one[1]]
    assert [path.suffix for path in quarantined_in(tmp_path)] == [".damaged"]
    task.cancel()
    await spool.stop()


async def test_tail_that_a_dead_process_left_was_perhaps_never_finished_and_is_kept(tmp_path: Path) -> None:
    one = event()
    path = written(tmp_path, FIRST, encode_chunk([one]), tail=segments.frame(encode_chunk([event()]))[:-1])
    content = path.read_bytes()
    async with draining(tmp_path) as (_, sink):
        assert ids(sink) == [one[1]]
        assert (tmp_path / (FIRST + ".unfinished")).read_bytes() == content


async def test_quarantined_segments_take_room_until_they_are_removed(tmp_path: Path) -> None:
    written(tmp_path, FIRST, encode_chunk([event()]), tail=bytes(1000))
    async with draining(tmp_path) as (spool, _):
        size = await eventually(lambda: spool.quarantined_bytes)
        assert size > 1000
        small = Spool(tmp_path, size, 1e12)
        with pytest.raises(SpoolFull):
            await small.append(b"x")
        (tmp_path / (FIRST + ".unfinished")).unlink()
        await small.count_quarantined()
        assert not small.full
        await small.append(b"x" * 10)
        await small.stop()


async def test_segment_that_can_not_be_read_at_all_is_quarantined(tmp_path: Path) -> None:
    (tmp_path / FIRST).mkdir()
    two = event()
    written(tmp_path, SECOND, encode_chunk([two]))
    async with draining(tmp_path) as (spool, sink):
        assert ids(sink) == [two[1]]
        assert spool.size == 0


async def test_removed_segment_is_skipped(tmp_path: Path) -> None:
    removed = written(tmp_path, FIRST, encode_chunk([event()]))
    two = event()
    written(tmp_path, SECOND, encode_chunk([two]))
    spool, sink = Spool(tmp_path, 1 << 30, 1e12), MemorySink(1)
    removed.unlink()
    task = asyncio.create_task(drain_forever(spool, sink))
    await eventually(lambda: task.done() or not spool.has_segments.is_set(), 60)
    assert not task.done()
    assert ids(sink) == [two[1]]
    assert spool.size == 0
    task.cancel()
    await asyncio.wait([task])
    await spool.stop()


pieces = st.binary(max_size=40) | st.binary(min_size=1, max_size=40).map(segments.frame)
chunks = st.lists(
    st.tuples(
        st.integers(0, 9),
        st.binary(max_size=20),
        st.integers(0, 9),
        st.text(max_size=3),
        st.binary(max_size=9),
    )
)
framed_chunks = chunks.map(encode_chunk).map(segments.frame)


@given(parts=st.lists(pieces | framed_chunks | st.integers(1, 30).map(bytes), max_size=6))
def test_any_bytes_can_be_drained(tmp_path_factory: pytest.TempPathFactory, parts: list[bytes]) -> None:
    directory = tmp_path_factory.mktemp("spool")
    (directory / FIRST).write_bytes(b"".join(parts))
    last = event()
    written(directory, SECOND, encode_chunk([last]))

    async def run() -> None:
        async with draining(directory) as (spool, sink):
            assert ids(sink)[-1] == last[1]
            assert spool.size == 0

    asyncio.run(run())
