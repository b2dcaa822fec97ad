"""A clock that is ahead is named, where the broker only says that a record can't be taken."""

import time

import pytest

from broker.client import open_producer
from broker.errors import KafkaError
from broker.kafka_diagnosis import reason_of
from broker.topics import ensure_topics
from schemas.settings import KafkaSettings


async def test_a_broker_that_refuses_our_time_is_told_from_other_errors(
    kafka_bootstrap: str, topic_prefix: str
) -> None:
    settings = KafkaSettings(kafka_bootstrap=kafka_bootstrap, topic_prefix=topic_prefix)
    await ensure_topics(settings)
    ahead = int(time.time() * 1000) + 2 * 3_600_000
    async with open_producer(settings) as producer:
        with pytest.raises(KafkaError) as refused:
            await producer.send_and_wait(f"{topic_prefix}issues", b"{}", key=b"i", timestamp_ms=ahead)
    assert "correct the clock" in reason_of(refused.value)
    assert reason_of(ValueError("no")) == "ValueError: no"
