"""Consistent reads of several tables: reads that no insert into one of the tables overlapped.

A block reaches its tables one after another. Tables compared during an insert differ, and repairing that
difference would count the block twice. So a read is discarded if an insert overlapped it. Writers are asked
to pause, which makes such reads possible under any load; the check for overlaps is done regardless.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

from storage.clickhouse_diagnosis import RetryLater
from storage.client import Client, scalar
from storage.exactly_once.insert_pauses import Pause, paused
from storage.replicas import lacks_majority

T = TypeVar("T")
_PAUSE_SECONDS: Final = 0.05
MIN_PAUSE_SECONDS: Final = 20.0
"""Writers wait this long for a holder that was killed."""
_PAUSE_FACTOR: Final = 4.0
"""Length of the next pause, as a multiple of the last read's duration."""
_MIN_READS: Final = 4
# A statement whose target can't be read counts as one into any table. The announcements are read first: the announced
# statements are among the processes then, or have ended.
RUNNING: Final = """
    SELECT count() + (SELECT count() FROM announced_inserts WHERE until > now64(3, 'UTC')) FROM system.processes
    WHERE query_kind = 'Insert' AND current_database = currentDatabase() AND is_initial_query
        AND extract(query, '(?i)INSERT\\\\s+INTO\\\\s+(?:TABLE\\\\s+)?(?:`?\\\\w+`?\\\\.)?`?(\\\\w+)')
            IN {targets:Array(String)}"""
BLOCKS: Final = """
    SELECT sum(cityHash64(table, partition_id, last)) FROM
    (
        SELECT table, partition_id, max(max_block_number) AS last FROM system.parts
        WHERE database = currentDatabase() AND table IN {tables:Array(String)} GROUP BY table, partition_id
    )"""


class NoConsistentRead(RetryLater):
    """Inserts overlapped every read until the timeout."""

    reason = "noConsistentRead"


def read_consistently(
    clients: Sequence[Client],
    tables: Iterable[str],
    read: Callable[[int], T],
    seconds: float = 60.0,
    pause: Pause | None = None,
) -> T:
    """The result of a `read` that no insert into `tables` or `ingest` overlapped on any of the servers.

    `read` gets a number that changes with each block. With a `pause`, writers hold back their inserts during
    and after the read. Raises NoConsistentRead after `seconds` and some reads.
    """
    names = sorted(tables)
    deadline, pause_seconds, reads = time.monotonic() + seconds, MIN_PAUSE_SECONDS, 0
    while True:
        if pause is not None:
            pause.extend(pause_seconds)
        before = _insert_state(clients, names)
        if before is not None:
            began = time.monotonic()
            result = read(before)
            if _insert_state(clients, names) == before:
                return result
            reads += 1
            pause_seconds = max(MIN_PAUSE_SECONDS, _PAUSE_FACTOR * (time.monotonic() - began))
        if time.monotonic() > deadline and (before is None or pause is None or reads >= _MIN_READS):
            raise NoConsistentRead(f"inserts overlapped every read for {seconds:.0f} s")
        time.sleep(_PAUSE_SECONDS)


def read_in_pause(
    clients: Sequence[Client], tables: Iterable[str], read: Callable[[int], T], seconds: float = 60.0
) -> T:
    """As `read_consistently`, with a new pause."""
    with paused(*clients) as pause:
        return read_consistently(clients, tables, read, seconds, pause)


def _insert_state(clients: Sequence[Client], tables: list[str]) -> int | None:
    """A number that changes with each inserted block, or None during an insert."""
    # In this order: the second query sees an insert that ends between the two.
    if any(scalar(client, RUNNING, {"targets": ["", "ingest", *tables]}) for client in clients):
        return None
    if any(lacks_majority(client, tables) for client in clients):
        return None
    return sum(int(scalar(client, BLOCKS, {"tables": tables})) for client in clients)
