"""Memory is given back once there is much more than after the last time."""

import psutil

from runtime.memory import release_memory, resident_bytes, times_to_trim

MB = 1 << 20
BUSY, IDLE = 0.9, 0.01
"""The share of a core that a process takes."""


def trimmed(looks: list[tuple[float, int]], freed: int = 0) -> list[tuple[int, bool]]:
    """The looks, by number, after which memory is released, and whether the process is idle then.

    Each look is the load before it and the resident megabytes; each release frees `freed` of them for good.
    """
    used, number, sizes = 0.0, 0, [megabytes * MB for _, megabytes in looks] + [1 << 40] * 5

    def pause(seconds: float) -> None:
        nonlocal used, number
        number += 1
        used += (looks[number][0] if number < len(looks) else BUSY) * seconds

    found: list[tuple[int, bool]] = []
    for is_idle in times_to_trim(lambda: sizes[number] - len(found) * freed * MB, lambda: used, pause):
        if number >= len(looks):
            break
        found.append((number, is_idle))
    return found


def test_memory_is_given_back_when_much_was_taken_and_not_again_while_it_is_needed() -> None:
    sizes = [50, 50, 60, 60, 100, 110, 110, 50, 50, 70, 70]
    assert trimmed([(BUSY, size) for size in sizes], freed=10) == [(4, False), (9, False)]


def test_memory_that_was_needed_under_load_is_given_back_once_the_process_is_idle() -> None:
    looks = [(IDLE, 50), *[(BUSY, 100)] * 5, *[(IDLE, 100)] * 20]
    # Tried again, but not for ever: memory that stays is taken for needed in the end.
    assert trimmed(looks) == [(1, False), (6, True), (11, True)]


def test_burst_shorter_than_a_look_is_given_back_too() -> None:
    assert trimmed([(IDLE, 50), (IDLE, 100), (IDLE, 51), (IDLE, 51)]) == [(1, True)]


def test_memory_freed_between_objects_that_are_kept_goes_back_to_the_system() -> None:
    process = psutil.Process()
    # Every hundredth is kept: so nothing is free at the end of the heap.
    kept = [bytes(4_000) for _ in range(50_000)][::100]
    before = process.memory_info().rss
    release_memory()
    assert before - process.memory_info().rss > 100_000_000
    assert len(kept) == 500
    assert resident_bytes() > MB
