import asyncio

import pytest

from broker.errors import PartitionsLost
from processors.faust_app.fence import Lease, RebalanceFence


async def test_closing_waits_for_the_take_inside() -> None:
    gate, order = RebalanceFence(), list[str]()
    gate.open = True

    async def handle_batch() -> None:
        with gate.passing():
            await asyncio.sleep(0)
            order.append("taken")

    taking = asyncio.create_task(handle_batch())
    await asyncio.sleep(0)
    await gate.close(5)
    order.append("closed")
    await taking
    assert order == ["taken", "closed"]
    assert not gate.open


async def test_a_take_that_does_not_end_is_reported() -> None:
    gate = RebalanceFence()
    with gate.passing(), pytest.raises(TimeoutError):
        await gate.close(0.01)


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
