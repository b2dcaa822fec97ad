"""Equal calls share an answer, and nobody sees what was before a change of his own."""

import asyncio

import pytest

from dashboard.http.responses import TaggedBody
from dashboard.response_cache import ResponseCache


class Counting:
    """Makes answers, counts them, and waits while it is told to."""

    def __init__(self, size: int = 1) -> None:
        self.loads = 0
        self.size = size
        self.go = asyncio.Event()
        self.go.set()

    async def __call__(self) -> TaggedBody:
        self.loads += 1
        number = self.loads
        await self.go.wait()
        return TaggedBody(b"x" * self.size, f'W/"{number}"')


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


async def test_fifty_equal_calls_at_once_are_one_question() -> None:
    cache, load = ResponseCache(1), Counting()
    answers = await asyncio.gather(*(cache.get_or_load("list", load) for _ in range(50)))
    assert load.loads == 1
    assert len({answer.etag for answer in answers}) == 1


async def test_an_answer_is_given_again_until_its_time_is_over() -> None:
    clock, load = Clock(), Counting()
    cache = ResponseCache(1, clock=clock)
    await cache.get_or_load("list", load)
    clock.now = 0.99
    await cache.get_or_load("list", load)
    assert load.loads == 1
    clock.now = 1.0
    await cache.get_or_load("list", load)
    assert load.loads == 2


async def test_other_questions_get_other_answers() -> None:
    cache, load = ResponseCache(1), Counting()
    assert (await cache.get_or_load("a", load)).etag != (await cache.get_or_load("b", load)).etag


async def test_after_a_change_everything_is_asked_again() -> None:
    cache, load = ResponseCache(60), Counting()
    await cache.get_or_load("list", load)
    cache.clear()
    assert (await cache.get_or_load("list", load)).etag == 'W/"2"'


async def test_an_answer_that_was_on_its_way_during_a_change_is_given_to_nobody_else() -> None:
    cache, load = ResponseCache(60), Counting()
    load.go.clear()
    before = asyncio.create_task(cache.get_or_load("list", load))
    await asyncio.sleep(0)
    cache.clear()
    after = asyncio.create_task(cache.get_or_load("list", load))
    await asyncio.sleep(0)
    load.go.set()
    assert [(await before).etag, (await after).etag] == ['W/"1"', 'W/"2"']
    assert (await cache.get_or_load("list", load)).etag == 'W/"2"'


async def test_who_goes_away_does_not_take_the_answer_from_the_others() -> None:
    cache, load = ResponseCache(60), Counting()
    load.go.clear()
    first = asyncio.create_task(cache.get_or_load("list", load))
    second = asyncio.create_task(cache.get_or_load("list", load))
    await asyncio.sleep(0)
    first.cancel()
    load.go.set()
    assert (await second).etag == 'W/"1"'


async def test_an_error_is_raised_for_all_who_wait_and_not_kept() -> None:
    cache = ResponseCache(60)
    loads = 0

    async def fail() -> TaggedBody:
        nonlocal loads
        loads += 1
        await asyncio.sleep(0)
        raise ValueError("no")

    results = await asyncio.gather(
        *(cache.get_or_load("list", fail) for _ in range(3)), return_exceptions=True
    )
    assert [type(one) for one in results] == [ValueError] * 3
    with pytest.raises(ValueError, match="no"):
        await cache.get_or_load("list", fail)
    assert loads == 2


async def test_what_is_kept_is_bounded_in_bytes_and_number() -> None:
    cache, load = ResponseCache(60, max_bytes=100, max_entries=3), Counting(size=40)
    for number in range(10):
        await cache.get_or_load(number, load)
        assert cache.size <= 100
    small = Counting()
    for number in range(10, 20):
        await cache.get_or_load(number, small)
    assert sum(cache.cached(number) is not None for number in range(20)) == 3


async def test_what_is_stale_is_let_go() -> None:
    clock, load = Clock(), Counting(size=10)
    cache = ResponseCache(1, clock=clock)
    await cache.get_or_load("a", load)
    clock.now = 5
    await cache.get_or_load("b", load)
    assert cache.size == 10


async def test_a_refresh_asks_again_and_keeps_what_it_got() -> None:
    cache, load = ResponseCache(60), Counting()
    await cache.get_or_load("list", load)
    assert (await cache.get_or_load("list", load, refresh=True)).etag == 'W/"2"'
    assert (await cache.get_or_load("list", load)).etag == 'W/"2"'
