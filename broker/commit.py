"""Commits without an answer, after which the client is replaced.

A commit whose coordinator is lost waits for cluster metadata without a limit. broker/event_loop.py fixes one
bug by which the metadata never arrived; the timeout is for the next one. A commit that the network delays can
arrive after later ones, and replace them. The group refuses it only once another client has joined under the
member's name.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from aiokafka.errors import KafkaError, NodeNotReadyError
from aiokafka.protocol.commit import OffsetCommitRequest

from broker.closing import stop_consumer
from broker.errors import CommitStalled
from broker.types import Consumer, TopicPartition

COMMIT_SECONDS: Final = 30.0
"""Longer than a group's session, and than a broker takes to load a group."""
STOP_SECONDS: Final = 10.0


async def commit(
    consumer: Consumer, offsets: Mapping[TopicPartition, Any], seconds: float = COMMIT_SECONDS
) -> None:
    """Commit. Raises CommitStalled after `seconds`, and the errors of the consumer."""
    try:
        async with asyncio.timeout(seconds):
            await consumer.commit(dict(offsets))
    except TimeoutError:
        raise CommitStalled(f"no response to a commit for {seconds:.0f} s") from None


def commit_once(consumer: Consumer) -> None:
    """Make a commit without an answer end in CommitStalled.

    aiokafka would send it again, and later commits, while it is on its way.
    """
    send = consumer._client.send

    async def sent(node: Any, request: Any, **options: Any) -> Any:
        try:
            return await send(node, request, **options)
        except KafkaError as error:
            if not isinstance(request, OffsetCommitRequest) or isinstance(error, NodeNotReadyError):
                raise
            raise CommitStalled(f"no response to a commit: {error}") from error

    consumer._client.send = sent


async def leave(consumer: Consumer) -> None:
    """Stop a consumer; after a timeout, as without the right to its group, only close its connections."""
    with suppress(TimeoutError):
        async with asyncio.timeout(STOP_SECONDS):
            await stop_consumer(consumer)
