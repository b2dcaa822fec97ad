"""The sliding window of one machine: exact against a plain model, and across processes."""

import asyncio
import mmap
import multiprocessing
from collections import deque
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.limits.local_window import LocalWindow
from tests.file_limit import files_end_at, in_a_process

SECOND = 1_000_000


class Clock:
    """Time that moves when told."""

    def __init__(self) -> None:
        self.us = 1_000 * SECOND

    def __call__(self) -> int:
        return self.us


def now(window: LocalWindow, token: str, limit: int) -> int:
    """The answer of `acquire`, which waits for nothing."""
    with pytest.raises(StopIteration) as answer:
        window.acquire(token, limit).send(None)
    return int(answer.value.value)


@given(
    limit=st.integers(1, 5),
    steps=st.lists(st.integers(0, 40 * SECOND), min_size=1, max_size=60),
)
@pytest.mark.holds("protocol 8", "contract 2.11")
def test_window_admits_exactly_as_a_list_of_the_last_60_s_would(limit: int, steps: list[int]) -> None:
    clock = Clock()
    admitted: deque[int] = deque()
    with TemporaryDirectory() as folder:
        window = LocalWindow(Path(folder), clock)
        for step in steps:
            clock.us += step
            while admitted and clock.us - admitted[0] >= 60 * SECOND:
                admitted.popleft()
            wait_ms = now(window, "token", limit)
            if len(admitted) < limit:
                assert wait_ms == 0
                admitted.append(clock.us)
            else:
                left_us = admitted[0] + 60 * SECOND - clock.us
                assert wait_ms == -(-left_us // 1000)


def test_tokens_have_separate_windows(tmp_path: Path) -> None:
    window = LocalWindow(tmp_path)
    assert now(window, "a", 1) == 0
    assert now(window, "b", 1) == 0
    assert now(window, "a", 1) > 0


@pytest.mark.parametrize("limit", [0, -1])
def test_limit_of_nothing_refuses_everything(tmp_path: Path, limit: int) -> None:
    assert now(LocalWindow(tmp_path), "t", limit) == 60_000


def test_file_names_do_not_show_the_token(tmp_path: Path) -> None:
    now(LocalWindow(tmp_path), "svc_pk_secret", 1)
    assert not any("svc_pk" in path.name for path in tmp_path.rglob("*"))


def take_many(folder: str, count: int) -> int:
    window = LocalWindow(Path(folder))
    return sum(now(window, "t", 1000) == 0 for _ in range(count))


def test_limit_holds_exactly_across_processes(tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        admitted = pool.starmap(take_many, [(str(tmp_path), 600)] * 4)
    assert sum(admitted) == 1000


def ring_of(directory: Path) -> Path:
    (ring,) = (path for path in directory.rglob("*-*") if path.is_file())
    return ring


@pytest.mark.parametrize("limit", [1, 5000])
def test_a_ring_has_its_room_on_the_disk_before_it_is_touched(tmp_path: Path, limit: int) -> None:
    now(LocalWindow(tmp_path), "t", limit)
    found = ring_of(tmp_path).stat()
    assert found.st_size == 8 + 8 * limit
    assert found.st_blocks * 512 >= found.st_size


def test_a_hole_of_an_old_ring_is_filled_and_its_window_stays(tmp_path: Path) -> None:
    clock = Clock()
    now(LocalWindow(tmp_path, clock), "t", 5000)
    ring = ring_of(tmp_path)
    content = ring.read_bytes()
    ring.unlink()
    with ring.open("wb") as file:
        file.write(content[: mmap.PAGESIZE])
        file.truncate(len(content))
    window = LocalWindow(tmp_path, clock)
    assert [now(window, "t", 5000) for _ in range(5000)].count(0) == 4999
    assert ring.stat().st_blocks * 512 >= len(content)


def take_on_a_full_disk(directory: str) -> tuple[int, int, int, int]:
    """Requests admitted of 30: while the disk refuses, within a window, after it, and of another process then."""
    clock = Clock()
    window = LocalWindow(Path(directory), clock)

    def admitted(of: LocalWindow) -> int:
        return [now(of, "t", 20) for _ in range(30)].count(0)

    with files_end_at(100):
        refusing = admitted(window)
    clock.us += 59 * SECOND
    within = admitted(window)
    clock.us += SECOND
    after = admitted(window)
    other = admitted(LocalWindow(Path(directory), clock))
    asyncio.run(window.close())
    return refusing, within, after, other


def test_process_counts_for_itself_while_the_disk_has_no_room_and_with_the_others_again_after(
    tmp_path: Path,
) -> None:
    assert in_a_process(take_on_a_full_disk, str(tmp_path)) == (20, 0, 20, 0)


async def test_folder_that_can_not_be_made_refuses_no_request(tmp_path: Path) -> None:
    folder = tmp_path / "rate-limit"
    folder.write_bytes(b"in the way")
    clock = Clock()
    window = LocalWindow(folder, clock)
    assert [await window.acquire("t", 2) > 0 for _ in range(3)] == [False, False, True]
    folder.unlink()
    clock.us += 60 * SECOND
    assert [await window.acquire("t", 2) > 0 for _ in range(3)] == [False, False, True]
    assert now(LocalWindow(folder, clock), "t", 2) > 0
    await window.close()
