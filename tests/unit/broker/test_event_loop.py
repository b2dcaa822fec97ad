"""aiokafka's connections under uvloop, at the moment of a broker's reset."""

import asyncio
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest
import uvloop
from aiokafka.client import AIOKafkaClient
from aiokafka.conn import AIOKafkaConnection, AIOKafkaProtocol

from broker.event_loop import patch_aiokafka
from tests.certificates import certificate
from tests.unit.broker.answering_broker import Broker


@pytest.fixture
def unmended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Undoes the patch at the end."""
    for name in ("send", "_send_sasl_token", "close"):
        write = getattr(AIOKafkaConnection, name)
        monkeypatch.setattr(AIOKafkaConnection, name, getattr(write, "__wrapped__", write))


async def ask_while_reset(monkeypatch: pytest.MonkeyPatch) -> tuple[asyncio.Task[None], bool | None]:
    """The metadata task, and the answer to a request after a reset during the task's request."""
    broker = Broker()
    client = AIOKafkaClient(bootstrap_servers=await broker.start(), retry_backoff_ms=10)
    await client.bootstrap()
    # The connection of the start gives way to that of the broker's own address.
    await client.force_metadata_update()
    asking: asyncio.Task[None] = client._sync_task
    reset = asyncio.Event()

    def lost(self: AIOKafkaProtocol, error: Exception | None, lose: Callable[..., None]) -> None:
        # Requested now, the task writes after the transport is closed, and before the reader's end closes the
        # connection.
        client.force_metadata_update()
        lose(self, error)
        reset.set()

    with monkeypatch.context() as patched:
        lose = AIOKafkaProtocol.connection_lost
        patched.setattr(AIOKafkaProtocol, "connection_lost", lambda self, error: lost(self, error, lose))
        broker.reset()
        async with asyncio.timeout(60):
            await reset.wait()
        for _ in range(10):
            await asyncio.sleep(0)
    async with asyncio.timeout(60):
        answer = None if asking.done() else await client.force_metadata_update()
    if answer is None:
        await asyncio.gather(
            *(connection.close() for connection in client._conns.values()), return_exceptions=True
        )
    else:
        await client.close()
    await broker.stop()
    return asking, answer


@pytest.mark.usefixtures("unmended")
def test_metadata_is_asked_for_after_a_reset(monkeypatch: pytest.MonkeyPatch) -> None:
    patch_aiokafka()
    _, answer = uvloop.run(ask_while_reset(monkeypatch))
    assert answer is True


@pytest.mark.usefixtures("unmended")
def test_bug_that_is_patched_is_still_there(monkeypatch: pytest.MonkeyPatch) -> None:
    asking, _ = uvloop.run(ask_while_reset(monkeypatch))
    assert asking.done(), "aiokafka or uvloop has changed: broker/event_loop.py can go"
    assert type(asking.exception()) is RuntimeError


async def close_while_ignored(file: Path) -> None:
    """Close a client of a broker that reads nothing more. Raises TimeoutError."""
    server, trust = (
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH),
        ssl.create_default_context(cafile=file),
    )
    server.load_cert_chain(file)
    broker = Broker(server)
    address = await broker.start()
    client = AIOKafkaClient(bootstrap_servers=address, security_protocol="SSL", ssl_context=trust)
    await client.bootstrap()
    await client.force_metadata_update()
    broker.ignore()
    try:
        async with asyncio.timeout(60):
            await client.close()
    finally:
        broker.reset()
        await broker.stop()


@pytest.mark.usefixtures("unmended")
def test_a_client_over_tls_does_not_wait_for_the_broker_to_say_good_bye(tmp_path: Path) -> None:
    patch_aiokafka()
    uvloop.run(close_while_ignored(certificate(tmp_path)))
