import time
from collections.abc import Iterator

import psutil
import pytest

from cli import idle_memory


class Ended(Exception):
    """Of the watch."""


def released(monkeypatch: pytest.MonkeyPatch, shares: list[float]) -> list[int]:
    """The spans of time, by number, after which memory was released, given the share of a core of each."""
    cpu, spans, released_after = 0.0, iter(enumerate(shares)), list[int]()
    number = -1

    def sleep(seconds: float) -> None:
        nonlocal cpu, number
        number, share = next(spans, (0, None))
        if share is None:
            raise Ended
        cpu += share * seconds

    monkeypatch.setattr(time, "sleep", sleep)
    monkeypatch.setattr(time, "process_time", lambda: cpu)
    monkeypatch.setattr(idle_memory, "_release", lambda: released_after.append(number))
    with pytest.raises(Ended):
        idle_memory._watch()
    return released_after


def test_memory_is_released_once_after_each_time_of_load(monkeypatch: pytest.MonkeyPatch) -> None:
    # The first time is after the start.
    assert released(monkeypatch, [0.01, 0.02, 0.9, 0.8, 0.03, 0.01, 0.5, 0.0]) == [0, 4, 7]


def scattered() -> Iterator[bytes]:
    """Objects of some kilobytes, of which every hundredth is kept: so nothing is free at the end of the heap."""
    objects = [bytes(4_000) for _ in range(50_000)]
    yield from objects[::100]


def test_what_was_freed_between_objects_that_are_kept_goes_back_to_the_system() -> None:
    process = psutil.Process()
    kept = list(scattered())
    before = process.memory_info().rss
    idle_memory._release()
    assert before - process.memory_info().rss > 100_000_000
    assert len(kept) == 500
