"""Commits that end: taken, refused, or given up together with the client that made them.

A commit whose coordinator is lost waits for the cluster's metadata without a limit. One fault by which none ever came is
mended in broker/event_loop.py; against the next one, the client is replaced.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from broker.errors import CommitStalled
from broker.types import Consumer, TopicPartition

COMMIT_SECONDS: Final = 30.0
"""Longer than a group's session and than what a broker takes to read a group back."""
_STOP_SECONDS: Final = 10.0


async def commit(
    consumer: Consumer, offsets: Mapping[TopicPartition, Any], seconds: float = COMMIT_SECONDS
) -> None:
    """Commit. Raises CommitStalled after `seconds`, and what the consumer raises."""
    try:
        async with asyncio.timeout(seconds):
            await consumer.commit(dict(offsets))
    except TimeoutError:
        raise CommitStalled(f"a commit has had no answer for {seconds:.0f} s") from None


async def leave(consumer: Consumer) -> None:
    """Stop a consumer, also one that can't be."""
    try:
        async with asyncio.timeout(_STOP_SECONDS):
            await consumer.stop()
    except TimeoutError:
        return
