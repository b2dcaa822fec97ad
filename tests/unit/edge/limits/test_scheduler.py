"""Scheduling: a few time slices each time round the loop, fairly by token, and no token starves the others."""

import asyncio
import threading
import time
from collections import Counter
from contextlib import suppress

import pytest

from edge.limits.fair_queue import Usage, Usages
from edge.limits.scheduler import LARGE, MAX_OPEN, ROUND_WEIGHT, SMALL, FairScheduler

AT_ONCE = ROUND_WEIGHT // LARGE


async def rounds(counter: list[int]) -> None:
    """Counts how often the loop comes round."""
    while True:
        counter[0] += 1
        await asyncio.sleep(0)


async def stretch(scheduler: FairScheduler, token: str, weight: int = LARGE) -> None:
    with scheduler.time_slice(token) as time_slice:
        await time_slice.begin(weight)


async def use_up_a_round(scheduler: FairScheduler) -> None:
    for number in range(AT_ONCE):
        await stretch(scheduler, f"first {number}")


@pytest.mark.parametrize("weight", [SMALL, LARGE])
async def test_a_single_request_does_not_wait(weight: int) -> None:
    waiting = stretch(FairScheduler(), "a", weight)
    with pytest.raises(StopIteration):
        waiting.send(None)


@pytest.mark.parametrize(("weight", "most"), [(LARGE, AT_ONCE), (SMALL, ROUND_WEIGHT)])
async def test_stretches_of_equals_come_in_the_order_of_asking_and_never_too_many_in_one_round(
    weight: int, most: int
) -> None:
    scheduler, counter = FairScheduler(), [0]
    seen: list[tuple[int, int]] = []

    async def one(number: int) -> None:
        with scheduler.time_slice(f"{number}") as time_slice:
            await time_slice.begin(weight)
            seen.append((number, counter[0]))

    counting = asyncio.create_task(rounds(counter))
    await asyncio.gather(*(one(number) for number in range(100)))
    counting.cancel()
    assert [number for number, _ in seen] == list(range(100))
    assert 1 < max(Counter(round_ for _, round_ in seen).values()) <= most


async def test_token_that_has_used_less_goes_before_those_who_wait_longer() -> None:
    scheduler = FairScheduler()
    seen: list[str] = []

    async def one(token: str) -> None:
        with scheduler.time_slice(token) as time_slice:
            await time_slice.begin(LARGE)
            seen.append(token)

    now = time.perf_counter()
    scheduler._usages.of("greedy", now).add_seconds(10.0, now)
    await asyncio.gather(
        use_up_a_round(scheduler),
        *(one("greedy") for _ in range(MAX_OPEN)),
        *(one(f"{n}") for n in range(5)),
    )
    assert seen == ["0", "1", "2", "3", "4", *["greedy"] * MAX_OPEN]


async def test_many_requests_of_one_token_keep_another_waiting_for_two_rounds_at_most() -> None:
    scheduler = FairScheduler()
    seen: list[str] = []

    async def one(token: str) -> None:
        with scheduler.time_slice(token) as time_slice:
            await time_slice.begin(SMALL)
            seen.append(token)
            for _ in range(3):
                await time_slice.pause()
                seen.append(token)

    many = [asyncio.create_task(one("many")) for _ in range(200)]
    await asyncio.sleep(0)
    await one("few")
    assert seen.index("few") <= 2 * ROUND_WEIGHT
    await asyncio.gather(*many)


async def test_greedy_token_has_one_stretch_a_round_and_shorter_ones_while_others_send() -> None:
    scheduler = FairScheduler()
    now = time.perf_counter()
    usage = scheduler._usages.of("greedy", now)
    usage.add_seconds(10.0, now)
    assert not scheduler.is_heavy(usage, now)
    scheduler._usages.of("other", now)
    assert scheduler.is_heavy(usage, now)
    counter = [0]
    seen: list[tuple[str, int]] = []

    async def one(token: str) -> None:
        await stretch(scheduler, token, SMALL)
        seen.append((token, counter[0]))

    counting = asyncio.create_task(rounds(counter))
    await asyncio.gather(one("greedy"), one("greedy"), one("other"), one("other"))
    counting.cancel()
    assert [token for token, _ in seen] == ["greedy", "other", "other", "greedy"]
    assert len({round_ for token, round_ in seen if token == "greedy"}) == 2


async def test_token_that_used_much_of_the_thread_rests_while_others_go_ahead_in_it() -> None:
    scheduler = FairScheduler()
    now = time.perf_counter()
    scheduler._usages.of("greedy", now).add_seconds(10.0, now)
    scheduler._usages.of("other", now)
    seen: list[str] = []

    async def one(token: str) -> None:
        with scheduler.time_slice(token) as time_slice:
            await time_slice.run_in_thread(time.sleep, 0.002)
            seen.append(token)

    await one("greedy")
    await asyncio.gather(one("greedy"), one("other"), one("another"))
    assert seen == ["greedy", "other", "another", "greedy"]
    scheduler.shut_down()


def test_use_counts_less_the_longer_ago_it_was() -> None:
    usage = Usage(1)
    usage.add_seconds(8.0, 100.0)
    assert usage.seconds(100.0) == 8.0
    assert 2.9 < usage.seconds(102.0) < 3.0
    usage.add_seconds(-100.0, 102.0)
    assert usage.seconds(102.0) == 0.0


def test_tokens_that_are_no_longer_heard_of_are_forgotten() -> None:
    usages = Usages(1)
    busy = usages.of("busy", 0.0)
    busy.requests = 1
    for number in range(5000):
        usages.of(f"{number}", float(number))
    assert len(usages._by_token) < 1100
    assert usages.of("busy", 5000.0) is busy


async def test_token_has_only_a_few_large_bodies_open() -> None:
    scheduler = FairScheduler()
    finish = asyncio.Event()
    opened: list[str] = []

    async def large(token: str) -> None:
        with scheduler.time_slice(token) as time_slice:
            await time_slice.begin(LARGE)
            opened.append(token)
            await finish.wait()

    tasks = [asyncio.create_task(large("many")) for _ in range(3 * MAX_OPEN)]
    tasks.append(asyncio.create_task(large("one")))
    for _ in range(50):
        await asyncio.sleep(0)
    assert Counter(opened) == {"many": MAX_OPEN, "one": 1}
    finish.set()
    await asyncio.gather(*tasks)
    assert Counter(opened) == {"many": 3 * MAX_OPEN, "one": 1}


async def test_work_in_the_thread_is_done_one_after_the_other_and_fairly() -> None:
    scheduler, done = FairScheduler(), []
    running = threading.Semaphore(1)

    def work(token: str) -> str:
        assert running.acquire(blocking=False)
        time.sleep(0.001)
        running.release()
        done.append(token)
        return token

    async def one(token: str) -> None:
        with scheduler.time_slice(token) as time_slice:
            await time_slice.begin(SMALL)
            assert await time_slice.run_in_thread(work, token) == token

    await asyncio.gather(*(one("many") for _ in range(20)), one("few"))
    scheduler.shut_down()
    assert Counter(done) == {"many": 20, "few": 1}
    assert done.index("few") <= 2


async def test_work_that_fails_or_is_given_up_leaves_the_thread_to_the_next() -> None:
    scheduler = FairScheduler()

    async def one(work: object) -> None:
        with scheduler.time_slice("a") as time_slice:
            await time_slice.begin(SMALL)
            await time_slice.run_in_thread(work)  # type: ignore[arg-type]

    def fail() -> None:
        raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011
        await one(fail)
    going = threading.Event()
    first = asyncio.create_task(one(going.wait))
    await asyncio.sleep(0)
    waiting = [asyncio.create_task(one(int)) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    first.cancel()
    going.set()
    with suppress(asyncio.CancelledError):
        await first
    await asyncio.gather(*waiting[1:])
    scheduler.shut_down()


@pytest.mark.parametrize("hops", range(6))
async def test_turn_of_one_who_went_away_is_passed_on(hops: int) -> None:
    """Whenever it goes: before its turn comes, when it has just been given, or after."""
    scheduler = FairScheduler()
    await use_up_a_round(scheduler)
    leaving = asyncio.create_task(stretch(scheduler, "leaving"))
    staying = asyncio.create_task(stretch(scheduler, "staying"))
    for _ in range(hops):
        await asyncio.sleep(0)
    leaving.cancel()
    await asyncio.gather(leaving, return_exceptions=True)
    async with asyncio.timeout(60):
        await staying
        await stretch(scheduler, "later")
