"""A consumer that doesn't stop."""

import asyncio
from typing import Any, cast

import pytest

from broker import commit


class Stuck:
    """A consumer whose stop never ends, and its client."""

    def __init__(self) -> None:
        self._client = self
        self.closed = False

    async def stop(self) -> None:
        await asyncio.Event().wait()

    async def close(self) -> None:
        self.closed = True


async def test_connections_of_a_consumer_that_does_not_stop_are_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(commit, "_STOP_SECONDS", 0.01)
    consumer = Stuck()
    await commit.leave(cast(Any, consumer))
    assert consumer.closed
