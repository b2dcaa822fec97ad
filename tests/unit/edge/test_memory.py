"""Memory is given back once there is much more than after the last time."""

import asyncio

from edge.memory import release_memory, resident_bytes, trim_forever
from tests.eventually import eventually

MB = 1 << 20


async def test_memory_is_given_back_when_much_was_taken_and_not_again_while_it_is_needed() -> None:
    now, given = [50 * MB], []

    def give(idle: bool) -> None:
        given.append(now[0])
        now[0] -= 10 * MB

    looks = [0]

    def resident() -> int:
        looks[0] += 1
        return now[0]

    async def after_some_looks() -> None:
        seen = looks[0]
        await eventually(lambda: looks[0] > seen + 6)

    task = asyncio.create_task(trim_forever(resident, give, pause=0))
    await after_some_looks()
    now[0] = 60 * MB
    await after_some_looks()
    assert given == []
    now[0] = 100 * MB
    await after_some_looks()
    assert given == [100 * MB]
    now[0] = 40 * MB
    await after_some_looks()
    now[0] = 60 * MB
    await after_some_looks()
    assert given == [100 * MB, 60 * MB]
    task.cancel()


async def test_what_was_needed_under_load_is_given_back_once_there_is_little_to_do() -> None:
    now, processor, given, looks = [50 * MB], [0.0], [], [0]
    collected: list[bool] = []
    load = [1.0]

    def give(idle: bool) -> None:
        given.append(now[0])
        collected.append(idle)

    def resident() -> int:
        looks[0] += 1
        return now[0]

    def used() -> float:
        processor[0] += load[0]
        return processor[0]

    async def after_some_looks() -> None:
        seen = looks[0]
        await eventually(lambda: looks[0] > seen + 10)

    task = asyncio.create_task(trim_forever(resident, give, used, pause=0.001))
    await after_some_looks()
    now[0] = 100 * MB
    await after_some_looks()
    assert given == [100 * MB]
    load[0] = 0.0
    await after_some_looks()
    # Tried again and again, but not for ever: what stays is taken for needed in the end.
    assert len(given) == 3
    # Collecting would hold up those who are served.
    assert collected == [False, True, True]
    task.cancel()


def test_giving_back_is_possible_here() -> None:
    release_memory(idle=True)
    assert resident_bytes() > MB
