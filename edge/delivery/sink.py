"""Where accepted events go: the interface, and what it raises."""

from typing import Protocol

from schemas.topics import Topic


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
        """Return when all in-sync replicas have the record. Raises SinkUnavailable or RecordTooLarge, whatever the cause, and nothing else."""

    async def start(self) -> None:
        """Begin to connect; returns at once."""

    async def stop(self) -> None:
        """Hand over what was sent and end."""
