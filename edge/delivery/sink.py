"""The interface of a destination of records."""

from typing import Protocol

from schemas.topics import Topic


class Sink(Protocol):
    """Sends records and returns when they are stored."""

    @property
    def partitions(self) -> int:
        """Partition count of `events`; 0 until it is known."""

    @property
    def up(self) -> bool:
        """Whether a send can succeed; otherwise `send` fails immediately."""

    async def send(
        self, topic: Topic, value: bytes, partition: int | None = None, key: bytes | None = None
    ) -> None:
        """Return when all in-sync replicas have the record. Raises SinkUnavailable or RecordTooLarge, nothing else."""

    async def start(self) -> None:
        """Start to connect; returns immediately."""

    async def stop(self) -> None:
        """Flush and close."""
