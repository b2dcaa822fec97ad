"""Where accepted events go: the interface, what it raises, and a sink in memory for tests and trials."""

from typing import NamedTuple, Protocol

from schemas.topics import Topic


class Unavailable(Exception):
    """Not acknowledged. It may still have been written: whoever sends it again relies on ids being dropped downstream."""


class Sink(Protocol):
    """Takes records and returns when they are safe."""

    @property
    def partitions(self) -> int:
        """Partitions of `events`; 0 until they are known."""

    @property
    def up(self) -> bool:
        """Whether a send has a chance; `send` refuses at once while it hasn't."""

    async def send(
        self, topic: Topic, value: bytes, partition: int | None = None, key: bytes | None = None
    ) -> None:
        """Return when all in-sync replicas have the record. Raises Unavailable."""

    async def start(self) -> None:
        """Begin to connect; returns at once."""

    async def stop(self) -> None:
        """Hand over what was sent and end."""


class Sent(NamedTuple):
    """A record that MemorySink took."""

    topic: Topic
    value: bytes
    partition: int | None
    key: bytes | None


class MemorySink:
    """Keeps what it is given; `up` can be set to False to play an outage."""

    def __init__(self, partitions: int = 4) -> None:
        self.partitions = partitions
        self.up = True
        self.records: list[Sent] = []

    async def send(
        self, topic: Topic, value: bytes, partition: int | None = None, key: bytes | None = None
    ) -> None:
        """Keep the record. Raises Unavailable while `up` is False."""
        if not self.up:
            raise Unavailable("told to be away")
        self.records.append(Sent(topic, value, partition, key))

    async def start(self) -> None:
        """Nothing to connect to."""

    async def stop(self) -> None:
        """Nothing to hand over."""
