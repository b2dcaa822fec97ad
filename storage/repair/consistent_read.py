"""Readings of several tables that belong together: taken while no block was being inserted into them.

A block reaches its tables one after the other. Two tables compared while one is under way differ, and mending that difference
would count the block twice. So a reading is taken, and kept only when no insert into one of its tables overlapped it. Writers are asked to
pause for it, so that such a moment comes however much there is to be written; that none overlapped is looked at all the same.
"""

import time
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from storage.client import Client, scalar
from storage.diagnosis import NotNow
from storage.repair.insert_pauses import Pause, paused

T = TypeVar("T")
_PAUSE_SECONDS: Final = 0.05
_LEAST_SECONDS: Final = 20.0
"""Of a pause: what others wait for a holder that was killed."""
_TIMES: Final = 4.0
"""How many times the last reading's duration a pause lasts that was too short for it."""
_LEAST_READINGS: Final = 4
# A statement whose target can't be read counts as one into any table.
_RUNNING: Final = """
    SELECT count() FROM system.processes
    WHERE query_kind = 'Insert' AND current_database = currentDatabase() AND is_initial_query
        AND extract(query, '(?i)INSERT\\\\s+INTO\\\\s+(?:TABLE\\\\s+)?(?:`?\\\\w+`?\\\\.)?`?(\\\\w+)') IN {targets:Array(String)}"""
_BLOCKS: Final = """
    SELECT sum(cityHash64(table, partition_id, last)) FROM
    (
        SELECT table, partition_id, max(max_block_number) AS last FROM system.parts
        WHERE database = currentDatabase() AND table IN {tables:Array(String)} GROUP BY table, partition_id
    )"""


class NoConsistentRead(NotNow):
    """Inserts overlapped every reading for as long as it was tried."""

    reason = "neverQuiet"


def quietly(
    client: Client,
    tables: Iterable[str],
    read: Callable[[], T],
    seconds: float = 60.0,
    pause: Pause | None = None,
) -> T:
    """What `read` returns when no insert into `tables`, or into `ingest`, overlapped it.

    With a `pause` the writers hold their inserts back meanwhile, and after. Raises NoConsistentRead after `seconds` and some readings.
    """
    asked = sorted(tables)
    limit, lasts, readings = time.monotonic() + seconds, _LEAST_SECONDS, 0
    while True:
        if pause is not None:
            pause.extend(lasts)
        before = _mark(client, asked)
        if before is not None:
            began = time.monotonic()
            result = read()
            if _mark(client, asked) == before:
                return result
            readings += 1
            lasts = max(_LEAST_SECONDS, _TIMES * (time.monotonic() - began))
        if time.monotonic() > limit and (before is None or pause is None or readings >= _LEAST_READINGS):
            raise NoConsistentRead(f"inserts overlapped every reading for {seconds:.0f} s")
        time.sleep(_PAUSE_SECONDS)


def in_a_pause(client: Client, tables: Iterable[str], read: Callable[[], T], seconds: float = 60.0) -> T:
    """As `quietly`, in a pause of its own."""
    with paused(client) as pause:
        return quietly(client, tables, read, seconds, pause)


def _mark(client: Client, tables: list[str]) -> int | None:
    """A number that each block that was inserted changes, or None while one is."""
    # In this order: an insert that ends between the two questions is in the second answer.
    if scalar(client, _RUNNING, {"targets": ["", "ingest", *tables]}):
        return None
    return int(scalar(client, _BLOCKS, {"tables": tables}))
