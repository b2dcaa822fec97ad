"""When a block is inserted. Pure.

An insert costs the server about the same whatever its size (60 ms of CPU for 100 rows, 70 for 2,000, with all rollups), so blocks wait:
shortly when little arrives, and in proportion to what an insert takes, so that inserting fills at most a quarter of the time. Where
much arrives, as the last block tells, the longest wait is the best.
"""

from typing import Final

from msgspec import Struct

_SHARE: Final = 3.0
"""Wait this many times the last insert's duration."""
BUSY_ROWS: Final = 200
"""Rows of a block that tell of load. After the short wait that is a thousand rows a second, and two hundred keep it so."""


class LastFlush(Struct, frozen=True):
    """The last block: seconds of its insert, its rows, and when it was done (a monotonic clock's seconds)."""

    seconds: float = 0.0
    rows: int = 0
    at: float = 0.0


class FlushPolicy(Struct, frozen=True):
    """The settings of the writer that decide, in rows, bytes and seconds."""

    block_rows: int
    block_bytes: int
    quiet_seconds: float
    wait_seconds: float

    def full(self, rows: int, size: int) -> bool:
        """Whether the block must not grow any more."""
        return rows >= self.block_rows or size >= self.block_bytes

    def recent(self, last: LastFlush, now: float) -> LastFlush:
        """What a block that begins now should know of the last one: nothing, after a rest."""
        return last if now - last.at < self.wait_seconds else LastFlush()

    def remaining(self, rows: int, size: int, age: float, last: LastFlush) -> float:
        """Seconds until a block of that age is inserted; 0 when it is due."""
        if self.full(rows, size):
            return 0.0
        wait = self.wait_seconds
        if last.rows < BUSY_ROWS:
            wait = min(max(self.quiet_seconds, _SHARE * last.seconds), wait)
        return max(0.0, wait - age)
