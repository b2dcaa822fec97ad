"""A consumer that doesn't stop, and commits without an answer."""

import asyncio
from typing import Any, cast

import pytest
from aiokafka.errors import KafkaConnectionError, KafkaError, NodeNotReadyError, RequestTimedOutError
from aiokafka.protocol.commit import OffsetCommitRequest, OffsetFetchRequest

from broker import commit
from broker.errors import CommitStalled


class Stuck:
    """A consumer whose stop never ends, and its client."""

    def __init__(self) -> None:
        self._client = self
        self._fetcher = self._coordinator = None
        self.closed = False

    async def stop(self) -> None:
        await asyncio.Event().wait()

    async def close(self) -> None:
        self.closed = True


async def test_connections_of_a_consumer_that_does_not_stop_are_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(commit, "STOP_SECONDS", 0.01)
    consumer = Stuck()
    await commit.leave(cast(Any, consumer))
    assert consumer.closed


COMMIT = OffsetCommitRequest("g", 1, "m", -1, [])


class Sending:
    """A consumer, and its client, which fails."""

    def __init__(self, error: KafkaError) -> None:
        self._client = self
        self._error = error

    async def send(self, _node: int, _request: object) -> None:
        raise self._error


@pytest.mark.parametrize(
    ("error", "request_", "raised"),
    [
        (KafkaConnectionError(), COMMIT, CommitStalled),
        (RequestTimedOutError(), COMMIT, CommitStalled),
        # It was not sent.
        (NodeNotReadyError(), COMMIT, NodeNotReadyError),
        (KafkaConnectionError(), OffsetFetchRequest("g", []), KafkaConnectionError),
    ],
)
async def test_a_commit_without_an_answer_ends_and_is_not_sent_again(
    error: KafkaError, request_: object, raised: type[KafkaError]
) -> None:
    consumer: Any = Sending(error)
    commit.commit_once(consumer)
    with pytest.raises(raised) as caught:
        await consumer._client.send(0, request_)
    assert type(caught.value) is raised
    # aiokafka retries these.
    assert caught.value.retriable is (raised is not CommitStalled)
