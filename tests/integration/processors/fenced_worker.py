"""A worker whose first assignment the group refuses.

The group does so to the slower of two workers of one name that join at the same time.
"""

from typing import Any

from aiokafka.consumer.group_coordinator import CoordinatorGroupRebalance
from aiokafka.errors import KafkaError

from cli import processors


async def refuse(self: Any, request: Any) -> bytes:
    """aiokafka's reaction to FENCED_INSTANCE_ID."""
    self._coordinator.request_rejoin()
    raise KafkaError("UnknownError()")


def main() -> None:
    """`svc processors`, changed."""
    changed: Any = CoordinatorGroupRebalance
    changed._send_sync_group_request = refuse
    processors.command()


if __name__ == "__main__":
    main()
