"""When a block is inserted. Pure.

An insert costs the server about the same whatever its size (60 ms of CPU for 100 rows, 70 for 2,000, with all
rollups), so blocks wait: shortly under little load, and in proportion to the last insert's duration, so that
inserts fill at most a third of the time. Under load, as measured by the last block, the longest wait is best.
"""

from typing import Final

from msgspec import Struct

_WAIT_FACTOR: Final = 2.0
"""Wait this many times the last insert's duration."""
BUSY_ROWS: Final = 200
"""Rows of a block that indicate load. After the short wait it is a thousand rows a second; two hundred a
second continue it."""


class LastFlush(Struct, frozen=True):
    """The last block: seconds of its insert, its rows, and when it ended (a monotonic clock's seconds)."""

    seconds: float = 0.0
    rows: int = 0
    at: float = 0.0


class FlushPolicy(Struct, frozen=True):
    """Decides when a block is inserted, by settings in rows, bytes and seconds. Pure."""

    block_rows: int
    block_bytes: int
    quiet_seconds: float
    wait_seconds: float

    def full(self, rows: int, size: int) -> bool:
        """Whether the block must not grow further."""
        return rows >= self.block_rows or size >= self.block_bytes

    def recent(self, last: LastFlush, now: float) -> LastFlush:
        """The last block as a new block should consider it: none, after a time without blocks."""
        return last if now - last.at < self.wait_seconds else LastFlush()

    def remaining(self, rows: int, size: int, age: float, last: LastFlush) -> float:
        """Seconds until a block of this age is to be inserted; 0 for now."""
        if self.full(rows, size):
            return 0.0
        wait = self.wait_seconds
        if last.rows < BUSY_ROWS:
            wait = min(max(self.quiet_seconds, _WAIT_FACTOR * last.seconds), wait)
        return max(0.0, wait - age)
