"""Closes Kafka clients reliably: aiokafka 0.14 leaves connections open, and tasks that open new ones.

- A start that is cancelled while it waits for the first metadata leaves its connection open.
- A consumer's `stop` that fails or is cancelled closes nothing, and the consumer's tasks continue. These
  tasks cancel it themselves: a fetch that pauses after an error, as while no broker responds, and a fetch
  that has not begun. The caller of `stop` then seems to be cancelled, and ends without a log message.
- A closed client connects again for any request made of it. Or it still waits for an answer, and requests it
  once more.

Tests detect when that is fixed upstream.
"""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from traceback import walk_tb
from typing import Any, Final

from aiokafka.conn import AIOKafkaConnection
from aiokafka.errors import KafkaError

from broker.types import Consumer, Producer

_AGAIN_SECONDS: Final = 0.1
_COORDINATING: Final = (
    "_coordination_task",
    "_heartbeat_task",
    "_commit_refresh_task",
    "_reset_committed_task",
)


def close_interrupted_start(client: Any) -> None:
    """Make an AIOKafkaClient close the connection of a start that fails or is cancelled.

    Only the start knows of this connection.
    """
    bootstrap = client.bootstrap

    async def closing() -> None:
        try:
            await bootstrap()
        except BaseException as error:
            for frame, _ in walk_tb(error.__traceback__):
                connection = frame.f_locals.get("bootstrap_conn")
                if isinstance(connection, AIOKafkaConnection):
                    connection.close()
            raise

    client.bootstrap = closing


def stay_closed(client: Any) -> None:
    """Make an AIOKafkaClient open no connection once it is closed.

    Requests made of it raise KafkaError.
    """
    close, connect = client.close, client._get_conn
    closed = asyncio.Event()

    async def closing() -> None:
        closed.set()
        await close()

    async def connection(*args: Any, **options: Any) -> AIOKafkaConnection | None:
        if closed.is_set():
            raise KafkaError("the client is closed")
        connected: AIOKafkaConnection | None = await connect(*args, **options)
        if closed.is_set() and connected is not None:
            # It was on its way.
            connected.close()
            raise KafkaError("the client is closed")
        return connected

    client.close, client._get_conn = closing, connection


async def stop_consumer(consumer: Consumer) -> None:
    """Stop a consumer, started or not. Raises KafkaError and OSError.

    Its connections are closed even if the stop fails or is cancelled.
    """
    try:
        await consumer.stop()
    except BaseException as error:
        # A second cancellation doesn't interrupt it.
        await asyncio.shield(asyncio.create_task(_end(consumer)))
        task = asyncio.current_task()
        if not isinstance(error, asyncio.CancelledError) or task is None or task.cancelling():
            raise


async def abandon_producer(producer: Producer) -> None:
    """Close a producer, started or not, without a flush.

    `stop` would wait for the broker in order to send the remaining records.
    """
    producer._closed = True
    if producer._sender is not None:
        # One that never ran raises its cancellation.
        with suppress(asyncio.CancelledError):
            await producer._sender.close()
    await _close(producer.client)


async def _end(consumer: Consumer) -> None:
    while pending := [task for task in _tasks(consumer) if not task.done()]:
        # Some swallow a cancellation, and go on with their end.
        for task in pending:
            task.cancel()
        await asyncio.wait(pending, timeout=_AGAIN_SECONDS)
    await _close(consumer._client)


async def _close(client: Any) -> None:
    # One that was cancelled as it closed raises that again; its connections are closed nevertheless.
    with suppress(asyncio.CancelledError):
        await client.close()


def _tasks(consumer: Consumer) -> Iterator["asyncio.Task[Any]"]:
    """The background tasks of a consumer."""
    fetcher, coordinator = consumer._fetcher, consumer._coordinator
    if fetcher is not None:
        yield from (fetcher._fetch_task, *fetcher._pending_tasks)
    for name in _COORDINATING:
        task = getattr(coordinator, name, None)
        if task is not None:
            yield task
