"""Turns: a few stretches each time round the loop, in the order of asking, and nobody keeps one for ever."""

import asyncio
from collections import Counter

import pytest

from edge.turns import A_ROUND, Turns


async def rounds(counter: list[int]) -> None:
    """Counts how often the loop comes round."""
    while True:
        counter[0] += 1
        await asyncio.sleep(0)


async def test_whoever_is_alone_does_not_wait() -> None:
    turns = Turns()
    waiting = turns.mine()
    with pytest.raises(StopIteration):
        waiting.send(None)


async def test_stretches_come_in_the_order_of_asking_and_never_too_many_in_one_round() -> None:
    turns, counter = Turns(), [0]
    seen: list[tuple[int, int]] = []

    async def stretch(number: int) -> None:
        await turns.mine()
        seen.append((number, counter[0]))

    counting = asyncio.create_task(rounds(counter))
    await asyncio.gather(*(stretch(number) for number in range(9)))
    counting.cancel()
    assert [number for number, _ in seen] == list(range(9))
    assert max(Counter(place for _, place in seen).values()) <= A_ROUND


async def test_whoever_asks_again_is_behind_those_who_wait() -> None:
    turns = Turns()
    seen: list[str] = []

    async def twice(name: str) -> None:
        await turns.mine()
        seen.append(name + "1")
        if name == "0":
            await asyncio.sleep(0)
        await turns.mine()
        seen.append(name + "2")

    await asyncio.gather(*(twice(str(name)) for name in range(2 * A_ROUND + 1)))
    firsts = [each for each in seen if each.endswith("1")]
    assert firsts == sorted(firsts)
    assert seen.index("02") > seen.index(f"{2 * A_ROUND}1")


@pytest.mark.parametrize("hops", range(6))
async def test_turn_of_one_who_went_away_is_passed_on(hops: int) -> None:
    """Whenever it goes: before its turn comes, when it has just been given, or after."""
    turns = Turns()
    for _ in range(A_ROUND):
        await turns.mine()
    leaving = asyncio.create_task(turns.mine())
    staying = asyncio.create_task(turns.mine())
    for _ in range(hops):
        await asyncio.sleep(0)
    leaving.cancel()
    await asyncio.gather(leaving, return_exceptions=True)
    async with asyncio.timeout(60):
        await staying
        await turns.mine()


async def test_turns_are_free_again_when_all_have_gone_away() -> None:
    turns = Turns()
    for _ in range(A_ROUND):
        await turns.mine()
    waiting = [asyncio.create_task(turns.mine()) for _ in range(3)]
    await asyncio.sleep(0)
    for each in waiting:
        each.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    async with asyncio.timeout(60):
        await turns.mine()
