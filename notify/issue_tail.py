"""The newest records of the topic `issues`, as far as they fit into memory."""

from typing import Final

import msgspec

from schemas.issues import decode_issue
from schemas.read_api import Issue
from schemas.times import DAY_MS
from storage.read.issue_rows import issue_of

MAX_BYTES: Final = 64 * 1024 * 1024
ENTRY_BYTES: Final = 256
"""What an entry takes besides its value."""


class IssueTail:
    """Keeps the newest record of each issue. The issues that changed longest ago are dropped first.

    Values stay encoded: many records pass for each one that a message needs. An erasure writes a record
    without the erased texts, which replaces the one before.
    """

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._room = max_bytes
        self._values: dict[bytes, bytes] = {}

    def apply(self, key: bytes, value: bytes | None) -> None:
        """Take a record of the topic."""
        old = self._values.pop(key, None)
        self._room += 0 if old is None else ENTRY_BYTES + len(old)
        if value is not None:
            self._values[key] = value
            self._room -= ENTRY_BYTES + len(value)
        while self._room < 0:
            oldest = self._values.pop(next(iter(self._values)))
            self._room += ENTRY_BYTES + len(oldest)

    def find(self, number: str, now_ms: int) -> Issue | None:
        """The issue, counted in the last day; None if it is merged or its record isn't kept."""
        try:
            record = decode_issue(self._values.get(number.encode(), b""))
        except msgspec.MsgspecError:
            return None
        return None if record.merged_into else issue_of(record, now_ms, start=now_ms - DAY_MS)
