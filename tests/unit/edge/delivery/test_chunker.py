"""Chunking: when a chunk is sent, its events, and the results of its waiters."""

import asyncio
from collections.abc import Callable

import pytest

from edge.delivery.chunker import Chunker, ChunkLimits, EventTuple
from edge.delivery.spool import SpoolFull
from tests.eventually import eventually


def event(number: int, size: int = 10) -> EventTuple:
    return 1, number.to_bytes(16, "big"), 0, "a/1", b"x" * size


def add(chunker: Chunker, partition: int, partitions: int, one: EventTuple) -> asyncio.Future[None]:
    (done,) = chunker.add_events(partition, partitions, [one])
    return done


class Taker:
    """Takes chunks; `gate` holds them back."""

    def __init__(self) -> None:
        self.chunks: list[tuple[int, int, list[EventTuple]]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.error: Exception | None = None

    async def __call__(self, partition: int, partitions: int, events: list[EventTuple]) -> None:
        self.chunks.append((partition, partitions, events))
        await self.gate.wait()
        if self.error:
            raise self.error


@pytest.mark.parametrize(
    ("limits", "sizes"),
    [
        (ChunkLimits(events=3, linger_ms=60_000), [10, 10, 10]),
        (ChunkLimits(bytes=100, linger_ms=60_000), [60, 60]),
        (ChunkLimits(bytes=100, linger_ms=60_000), [1000]),
        (ChunkLimits(linger_ms=1), [10]),
    ],
    ids=["events", "bytes", "an event larger than a chunk", "linger time"],
)
async def test_chunk_leaves_at_the_first_of_its_limits(limits: ChunkLimits, sizes: list[int]) -> None:
    taker = Taker()
    chunker = Chunker(taker, limits)
    await asyncio.gather(*(add(chunker, 0, 4, event(n, size)) for n, size in enumerate(sizes)))
    assert [len(events) for _, _, events in taker.chunks] == [len(sizes)]


async def test_chunks_of_all_partitions_are_sent_together_except_those_under_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taker = Taker()
    taker.gate.clear()
    chunker = Chunker(taker, ChunkLimits(events=2, linger_ms=60_000))
    ends: list[Callable[[], None]] = []

    def call_later(_seconds: float, end: Callable[[], None]) -> object:
        ends.append(end)
        return end

    monkeypatch.setattr(asyncio.get_running_loop(), "call_later", call_later)
    chunker.add_events(2, 3, [event(0), event(1)])
    waits = [add(chunker, partition, 3, event(2 + partition)) for partition in (2, 0, 1)]
    monkeypatch.undo()
    (end,) = ends
    end()
    await eventually(lambda: len(taker.chunks) == 3)
    assert [partition for partition, _, _ in taker.chunks] == [2, 0, 1]
    taker.gate.set()
    await asyncio.gather(*waits)
    assert len(taker.chunks) == 4


async def test_chunk_gathers_while_an_earlier_one_is_under_way() -> None:
    taker = Taker()
    taker.gate.clear()
    chunker = Chunker(taker, ChunkLimits(linger_ms=0))
    first = add(chunker, 0, 4, event(0))
    await eventually(lambda: len(taker.chunks) == 1)
    rest = [add(chunker, 0, 4, event(n)) for n in range(1, 50)]
    for _ in range(20):
        await asyncio.sleep(0)
    assert len(taker.chunks) == 1
    taker.gate.set()
    await asyncio.gather(first, *rest)
    assert [len(events) for _, _, events in taker.chunks] == [1, 49]


async def test_every_waiter_of_a_chunk_learns_of_its_failure_and_the_next_chunk_is_untouched() -> None:
    taker = Taker()
    taker.error = SpoolFull("full")
    chunker = Chunker(taker, ChunkLimits(linger_ms=1))
    found = await asyncio.gather(*(add(chunker, 0, 4, event(n)) for n in range(3)), return_exceptions=True)
    assert [type(each) for each in found] == [SpoolFull] * 3
    taker.error = None
    await add(chunker, 0, 4, event(4))


async def test_unawaited_failure_is_quiet() -> None:
    taker = Taker()
    taker.error = SpoolFull("full")
    chunker = Chunker(taker, ChunkLimits(linger_ms=0))
    add(chunker, 0, 4, event(1))
    await chunker.stop()
    assert chunker.waiting_events == 0


async def test_stop_sends_the_gathered_events_and_waits_for_them() -> None:
    taker = Taker()
    chunker = Chunker(taker, ChunkLimits(linger_ms=60_000))
    waits = [add(chunker, n % 3, 3, event(n)) for n in range(9)]
    assert chunker.waiting_events == 9
    await chunker.stop()
    assert all(wait.done() for wait in waits)
    assert chunker.waiting_events == 0


@pytest.mark.parametrize("count", [1, 99, 100, 101, 1000])
async def test_no_event_is_lost_or_repeated(count: int) -> None:
    taker = Taker()
    chunker = Chunker(taker, ChunkLimits(linger_ms=0))
    await asyncio.gather(*(add(chunker, n % 4, 4, event(n)) for n in range(count)))
    ids = [each[1] for _, _, events in taker.chunks for each in events]
    assert len(ids) == len(set(ids)) == count
