import asyncio

import pytest

from broker.errors import PartitionsLost
from processors.faust_app.fence import Interrupted, InterruptibleLookUp, Lease, RebalanceFence
from processors.grouper.grouper_stage import IdsByPartition


async def test_closing_waits_for_the_batch_in_progress() -> None:
    fence, order = RebalanceFence(), list[str]()
    fence.open = True

    async def handle_batch() -> None:
        with fence.batch():
            await asyncio.sleep(0)
            order.append("handled")

    handling = asyncio.create_task(handle_batch())
    await asyncio.sleep(0)
    await fence.stop_batches(5)
    order.append("closed")
    await handling
    assert order == ["handled", "closed"]
    assert not fence.open


async def test_a_batch_that_does_not_end_is_reported() -> None:
    fence = RebalanceFence()
    with fence.batch(), pytest.raises(TimeoutError, match="a batch in progress did not end within 0 s"):
        await fence.stop_batches(0.01)


class Endless:
    """ClickHouse is away."""

    async def among(self, ids: IdsByPartition) -> set[tuple[int, bytes]]:  # noqa: ARG002
        await asyncio.Event().wait()
        raise AssertionError


async def test_closing_interrupts_a_batch_that_waits_for_a_look_up() -> None:
    fence = RebalanceFence()
    fence.open = True

    async def handle_batch() -> None:
        with fence.batch():
            await InterruptibleLookUp(Endless(), fence).among({0: [(1, bytes(16))]})

    handling = asyncio.create_task(handle_batch())
    await asyncio.sleep(0)
    await fence.stop_batches(5)
    with pytest.raises(Interrupted):
        await handling


async def test_another_timeout_within_a_wait_is_no_interruption() -> None:
    with pytest.raises(TimeoutError):
        async with RebalanceFence().interruptible():
            raise TimeoutError


def test_a_lease_that_was_never_given_is_not_checked() -> None:
    Lease(0.0).check()


def test_a_lease_runs_out_without_heartbeats() -> None:
    lease = Lease(-1.0)
    lease.renew()
    with pytest.raises(PartitionsLost):
        lease.check()


def test_a_heartbeat_renews_the_lease() -> None:
    lease = Lease(60.0)
    lease.renew()
    lease.check()
