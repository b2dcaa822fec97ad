"""Equal calls share an answer, and nobody sees what was before a change of his own."""

import asyncio

import pytest

from dashboard.http.responses import Tagged
from dashboard.response_cache import ResponseCache


class Counting:
    """Makes answers, counts them, and waits while it is told to."""

    def __init__(self, size: int = 1) -> None:
        self.made = 0
        self.size = size
        self.go = asyncio.Event()
        self.go.set()

    async def __call__(self) -> Tagged:
        self.made += 1
        number = self.made
        await self.go.wait()
        return Tagged(b"x" * self.size, f'W/"{number}"')


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


async def test_fifty_equal_calls_at_once_are_one_question() -> None:
    shared, make = ResponseCache(1), Counting()
    answers = await asyncio.gather(*(shared.answer("list", make) for _ in range(50)))
    assert make.made == 1
    assert len({answer.etag for answer in answers}) == 1


async def test_an_answer_is_given_again_until_its_time_is_over() -> None:
    clock, make = Clock(), Counting()
    shared = ResponseCache(1, clock=clock)
    await shared.answer("list", make)
    clock.now = 0.99
    await shared.answer("list", make)
    assert make.made == 1
    clock.now = 1.0
    await shared.answer("list", make)
    assert make.made == 2


async def test_other_questions_get_other_answers() -> None:
    shared, make = ResponseCache(1), Counting()
    assert (await shared.answer("a", make)).etag != (await shared.answer("b", make)).etag


async def test_after_a_change_everything_is_asked_anew() -> None:
    shared, make = ResponseCache(60), Counting()
    await shared.answer("list", make)
    shared.forget()
    assert (await shared.answer("list", make)).etag == 'W/"2"'


async def test_an_answer_that_was_on_its_way_during_a_change_is_given_to_nobody_else() -> None:
    shared, make = ResponseCache(60), Counting()
    make.go.clear()
    before = asyncio.create_task(shared.answer("list", make))
    await asyncio.sleep(0)
    shared.forget()
    after = asyncio.create_task(shared.answer("list", make))
    await asyncio.sleep(0)
    make.go.set()
    assert [(await before).etag, (await after).etag] == ['W/"1"', 'W/"2"']
    assert (await shared.answer("list", make)).etag == 'W/"2"'


async def test_who_goes_away_does_not_take_the_answer_from_the_others() -> None:
    shared, make = ResponseCache(60), Counting()
    make.go.clear()
    first = asyncio.create_task(shared.answer("list", make))
    second = asyncio.create_task(shared.answer("list", make))
    await asyncio.sleep(0)
    first.cancel()
    make.go.set()
    assert (await second).etag == 'W/"1"'


async def test_an_error_is_raised_for_all_who_wait_and_not_kept() -> None:
    shared = ResponseCache(60)
    asked = 0

    async def fail() -> Tagged:
        nonlocal asked
        asked += 1
        await asyncio.sleep(0)
        raise ValueError("no")

    found = await asyncio.gather(*(shared.answer("list", fail) for _ in range(3)), return_exceptions=True)
    assert [type(one) for one in found] == [ValueError] * 3
    with pytest.raises(ValueError, match="no"):
        await shared.answer("list", fail)
    assert asked == 2


async def test_what_is_kept_is_bounded_in_bytes_and_number() -> None:
    shared, make = ResponseCache(60, max_bytes=100, max_entries=3), Counting(size=40)
    for number in range(10):
        await shared.answer(number, make)
        assert shared.size <= 100
    small = Counting()
    for number in range(10, 20):
        await shared.answer(number, small)
    assert sum(shared.kept(number) is not None for number in range(20)) == 3


async def test_what_is_stale_is_let_go() -> None:
    clock, make = Clock(), Counting(size=10)
    shared = ResponseCache(1, clock=clock)
    await shared.answer("a", make)
    clock.now = 5
    await shared.answer("b", make)
    assert shared.size == 10


async def test_anew_asks_again_and_keeps_what_it_got() -> None:
    shared, make = ResponseCache(60), Counting()
    await shared.answer("list", make)
    assert (await shared.answer("list", make, refresh=True)).etag == 'W/"2"'
    assert (await shared.answer("list", make)).etag == 'W/"2"'


async def test_without_time_nothing_is_shared() -> None:
    shared, make = ResponseCache(0), Counting()
    await asyncio.gather(*(shared.answer("list", make) for _ in range(3)))
    assert (make.made, shared.size) == (3, 0)
