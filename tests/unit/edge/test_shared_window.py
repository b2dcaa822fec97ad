"""The sliding window of one machine: exact against a plain model, and across processes."""

import multiprocessing
from collections import deque
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge.shared_window import SharedWindow

SECOND = 1_000_000


class Clock:
    """Time that moves when told."""

    def __init__(self) -> None:
        self.us = 1_000 * SECOND

    def __call__(self) -> int:
        return self.us


@settings(max_examples=60, deadline=None)
@given(
    limit=st.integers(1, 5),
    steps=st.lists(st.integers(0, 40 * SECOND), min_size=1, max_size=60),
)
def test_window_admits_exactly_what_a_list_of_the_last_60_s_would(limit: int, steps: list[int]) -> None:
    clock = Clock()
    admitted: deque[int] = deque()
    with TemporaryDirectory() as folder:
        window = SharedWindow(Path(folder), clock)
        for step in steps:
            clock.us += step
            while admitted and clock.us - admitted[0] >= 60 * SECOND:
                admitted.popleft()
            wait_ms = window.take_now("token", limit)
            if len(admitted) < limit:
                assert wait_ms == 0
                admitted.append(clock.us)
            else:
                left_us = admitted[0] + 60 * SECOND - clock.us
                assert wait_ms == -(-left_us // 1000)


def test_refused_requests_do_not_count(tmp_path: Path) -> None:
    clock = Clock()
    window = SharedWindow(tmp_path, clock)
    assert [window.take_now("t", 2) for _ in range(2)] == [0, 0]
    clock.us += 30 * SECOND
    assert [window.take_now("t", 2) for _ in range(1000)] == [30_000] * 1000
    clock.us += 30 * SECOND
    assert [window.take_now("t", 2) > 0 for _ in range(3)] == [False, False, True]


def test_waiting_as_long_as_told_is_enough_and_a_millisecond_less_is_not(tmp_path: Path) -> None:
    clock = Clock()
    window = SharedWindow(tmp_path, clock)
    window.take_now("t", 1)
    clock.us += 123_456
    wait_ms = window.take_now("t", 1)
    clock.us += (wait_ms - 1) * 1000
    assert window.take_now("t", 1) > 0
    clock.us += 1000
    assert window.take_now("t", 1) == 0


def test_tokens_have_windows_of_their_own(tmp_path: Path) -> None:
    window = SharedWindow(tmp_path)
    assert window.take_now("a", 1) == 0
    assert window.take_now("b", 1) == 0
    assert window.take_now("a", 1) > 0


@pytest.mark.parametrize("limit", [0, -1])
def test_limit_of_nothing_refuses_everything(tmp_path: Path, limit: int) -> None:
    assert SharedWindow(tmp_path).take_now("t", limit) == 60_000


def test_window_survives_its_process(tmp_path: Path) -> None:
    clock = Clock()
    SharedWindow(tmp_path, clock).take_now("t", 1)
    assert SharedWindow(tmp_path, clock).take_now("t", 1) > 0


def test_file_names_do_not_show_the_token(tmp_path: Path) -> None:
    SharedWindow(tmp_path).take_now("svc_pk_secret", 1)
    assert not any("svc_pk" in path.name for path in tmp_path.rglob("*"))


def take_many(folder: str, count: int) -> int:
    window = SharedWindow(Path(folder))
    return sum(window.take_now("t", 1000) == 0 for _ in range(count))


def test_limit_holds_exactly_across_processes(tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        admitted = pool.starmap(take_many, [(str(tmp_path), 600)] * 4)
    assert sum(admitted) == 1000
