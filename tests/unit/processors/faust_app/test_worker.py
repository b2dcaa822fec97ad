"""The last message of a worker."""

import asyncio
from collections.abc import Mapping

import pytest
from aiokafka.errors import for_code

from broker.errors import KafkaError, PartitionsLost
from broker.member_name import MemberName
from processors.faust_app.worker import exit_reason

FENCED_INSTANCE_ID = 82
LOST = PartitionsLost("another worker wrote at offset 5: 6 is the next")
OUSTED = KafkaError(repr(for_code(FENCED_INSTANCE_ID)()))


def name(holders: Mapping[str, str]) -> MemberName:
    """The name of a worker that the broker knows under these ids."""

    async def known() -> Mapping[str, str]:
        return holders

    return MemberName("svc-processors", "NAME=a", 1.0, known)


@pytest.mark.parametrize("failure", [LOST, OUSTED], ids=["by the log", "by the group"])
async def test_worker_that_another_one_of_its_name_ousts_says_so(failure: Exception) -> None:
    reason = await exit_reason(failure, name({"a-1": "svc at 10.0.0.7"}), "a-0")
    assert reason == (
        "another process is in the group svc-processors with NAME=a too (svc at 10.0.0.7): give each a different name"
    )


async def test_a_failure_without_words_says_where_it_was() -> None:
    with pytest.raises(TimeoutError) as caught:
        async with asyncio.timeout(0):
            await asyncio.Event().wait()
    reason = await exit_reason(caught.value, name({}), "a-0")
    assert reason.startswith(f"TimeoutError: in {__file__}:")


async def test_worker_that_loses_its_partitions_to_another_name_says_where() -> None:
    assert str(LOST) in await exit_reason(LOST, name({}), "a-0")
