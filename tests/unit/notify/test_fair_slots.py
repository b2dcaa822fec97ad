"""Projects take turns on a channel."""

import asyncio
from contextlib import suppress
from functools import partial

from notify.fair_slots import FairSlots
from tests.eventually import eventually


async def test_one_message_of_a_project_waits_for_no_flood_of_another() -> None:
    slots, begun = FairSlots(2), list[str]()
    go = asyncio.Semaphore(0)

    async def send(project: str) -> None:
        async with slots.held(project):
            begun.append(project)
            await go.acquire()

    def has_begun(number: int) -> bool:
        return len(begun) == number

    flood = [asyncio.create_task(send("flood")) for _ in range(50)]
    await eventually(lambda: len(begun) == 2)
    others = [asyncio.create_task(send(project)) for project in ("a", "a", "b")]
    await asyncio.sleep(0)
    for number in range(3, 8):
        go.release()
        await eventually(partial(has_begun, number))
    assert begun[2:] == ["flood", "a", "b", "flood", "a"]
    for _ in range(len(flood) + len(others)):
        go.release()
    await asyncio.gather(*flood, *others)
    assert begun.count("flood") == len(flood)


async def test_who_is_cancelled_leaves_its_slot_to_the_next() -> None:
    slots, go = FairSlots(1), asyncio.Event()
    held = list[str]()

    async def hold(project: str) -> None:
        async with slots.held(project):
            held.append(project)
            await go.wait()

    first, second, third = (asyncio.create_task(hold(project)) for project in "abc")
    await eventually(lambda: held == ["a"])
    second.cancel()
    first.cancel()
    await eventually(lambda: held == ["a", "c"])
    go.set()
    await third
    for task in (first, second):
        with suppress(asyncio.CancelledError):
            await task
