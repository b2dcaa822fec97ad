"""A sink that keeps records in memory."""

from typing import NamedTuple

from broker.errors import SinkUnavailable
from schemas.topics import Topic


class Sent(NamedTuple):
    """A record that MemorySink took."""

    topic: Topic
    value: bytes
    partition: int | None
    key: bytes | None


class MemorySink:
    """Keeps the records; `up` can be set to False to play an outage."""

    def __init__(self, partitions: int = 4) -> None:
        self.partitions = partitions
        self.up = True
        self.records: list[Sent] = []

    async def send(
        self, topic: Topic, value: bytes, partition: int | None = None, key: bytes | None = None
    ) -> None:
        """Keep the record. Raises SinkUnavailable while `up` is False."""
        if not self.up:
            raise SinkUnavailable("told to be away")
        self.records.append(Sent(topic, value, partition, key))

    async def start(self) -> None:
        """Nothing to connect to."""

    async def stop(self) -> None:
        """Nothing to hand over."""
