"""A ClickHouse that takes its time for each answer delays events, and that is all."""

from urllib.parse import urlsplit

import pytest

from tests.forwarder import forwarding
from tests.integration.storage.grouped import Stage, ended, exactly, whole


@pytest.mark.slow
async def test_events_are_stored_by_a_server_whose_every_answer_takes_a_second(stage: Stage) -> None:
    await stage.produce(1)
    server = urlsplit(stage.url)
    assert server.port is not None
    with forwarding([server.port], answer_seconds=1.0) as port:
        address = stage.url.replace(f"{server.hostname}:{server.port}", f"127.0.0.1:{port}")
        writer = stage.writer(SVC_CLICKHOUSE_URL=address)
        with ended(writer):
            assert await whole(stage, 300.0) == exactly(stage.total)
