"""Readings of several tables that belong together: taken while no block was being inserted.

A block reaches its tables one after the other. Two tables compared while one is under way differ, and mending that difference
would count the block twice. So a reading is taken, and kept only when no insert overlapped it.
"""

import time
from collections.abc import Callable
from typing import Final, TypeVar

from storage.client import Client, scalar
from storage.trouble import NotNow

T = TypeVar("T")
_PAUSE_SECONDS: Final = 0.05
_RUNNING: Final = """
    SELECT count() FROM system.processes
    WHERE query_kind = 'Insert' AND current_database = currentDatabase() AND is_initial_query"""
_BLOCKS: Final = """
    SELECT sum(cityHash64(table, partition_id, last)) FROM
    (
        SELECT table, partition_id, max(max_block_number) AS last FROM system.parts
        WHERE database = currentDatabase() GROUP BY table, partition_id
    )"""


class NeverQuiet(NotNow):
    """Inserts overlapped every reading for as long as it was tried."""

    reason = "neverQuiet"


def quietly(client: Client, read: Callable[[], T], seconds: float = 60.0) -> T:
    """What `read` returns when no insert into the client's database overlapped it. Raises NeverQuiet after `seconds`."""
    limit = time.monotonic() + seconds
    while True:
        before = _mark(client)
        if before is not None:
            result = read()
            if _mark(client) == before:
                return result
        if time.monotonic() > limit:
            raise NeverQuiet(f"inserts overlapped every reading for {seconds:.0f} s")
        time.sleep(_PAUSE_SECONDS)


def _mark(client: Client) -> int | None:
    """A number that each block that was inserted changes, or None while one is."""
    # In this order: an insert that ends between the two questions is in the second answer.
    if scalar(client, _RUNNING):
        return None
    return int(scalar(client, _BLOCKS))
