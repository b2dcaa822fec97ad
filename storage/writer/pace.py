"""When a block is inserted. Pure.

An insert costs the server about the same whatever its size, so blocks wait: shortly when little arrives, and under load in
proportion to what an insert takes, so that inserting fills a quarter of the time and blocks grow with what arrives meanwhile.
"""

from typing import Final

from msgspec import Struct

_SHARE: Final = 3.0
"""Wait this many times the last insert's duration."""


class Pace(Struct, frozen=True):
    """The settings of the writer that decide, in rows, bytes and seconds."""

    block_rows: int
    block_bytes: int
    quiet_seconds: float
    wait_seconds: float

    def full(self, rows: int, size: int) -> bool:
        """Whether the block must not grow any more."""
        return rows >= self.block_rows or size >= self.block_bytes

    def remaining(self, rows: int, size: int, age: float, last_insert: float) -> float:
        """Seconds until a block of that age is inserted; 0 when it is due."""
        if self.full(rows, size):
            return 0.0
        wait = min(max(self.quiet_seconds, _SHARE * last_insert), self.wait_seconds)
        return max(0.0, wait - age)
