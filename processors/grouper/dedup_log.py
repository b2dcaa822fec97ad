"""The values of the topic `seen`: what each source record was the first to carry, and what was decided about it."""

from typing import Final

import msgspec
from msgspec import Struct

from processors.grouper.id_keys import KEY_BYTES
from processors.grouper.log_clock import DAY_MS, LogClock

_SEPARATOR: Final = b"/"
_DELTAS: Final = b"deltas"
_HORIZON: Final = b"horizon"


class DedupRecord(Struct, array_like=True, frozen=True, gc=False):
    """Decisions about one record of `events`.

    `new` are the positions in its chunk whose ids it was the first to carry (None: all of `total`), `keys` their joined keys
    (`processors.grouper.id_keys`), `fingerprints` 8 bytes little-endian for each (0: discarded by a rule; empty once the record has
    been forwarded and merged), `dead` the positions that could not be processed.
    """

    offset: int
    total: int
    new: list[int] | None
    keys: bytes
    fingerprints: bytes = b""
    dead: list[int] = []

    @property
    def positions(self) -> list[int]:
        """The positions that are new."""
        return list(range(self.total)) if self.new is None else self.new

    @property
    def is_bad(self) -> bool:
        """Whether it, or an event of it, was set aside: a chunk without events is none."""
        return bool(self.dead) or not (self.total or self.keys)


class DedupEntry(Struct, array_like=True, frozen=True):
    """Consecutive records of one partition of `events`, decided together.

    `watermark_ms` is the greatest record timestamp so far, and `clock` the log's clock after them (None in entries of older
    versions, whose day is the watermark's); all of an entry lies in one of its days. `batch_start` is the first offset that was handled together with these, in this entry or one before it, or the one after them
    once all of them is known to be forwarded. `merged` entries are
    old: all that is in them has been forwarded. `boundary` is `since` and `last` of a `processors.grouper.replay.ReplayBoundary` in entries that are written
    again after the topic was emptied: records up to `last` were decided before.
    """

    watermark_ms: int
    batch_start: int
    records: list[DedupRecord]
    merged: bool = False
    boundary: tuple[int, int] | None = None
    clock: LogClock | None = None

    @property
    def day(self) -> int:
        """The day of the log."""
        return self.watermark_ms // DAY_MS if self.clock is None else self.clock.day

    @property
    def first(self) -> int:
        """Offset of the first record."""
        return self.records[0].offset

    @property
    def last(self) -> int:
        """Offset of the last record."""
        return self.records[-1].offset

    @property
    def ids(self) -> int:
        """How many ids were first carried."""
        return sum(len(record.keys) for record in self.records) // KEY_BYTES


class DeltasPosition(Struct, array_like=True, frozen=True):
    """Up to where `issue-deltas` is folded, with two sums by which a damaged `issues` topic is noticed."""

    offset: int
    issues: int
    versions: int


def entry_key(partition: int, first: int, last: int) -> bytes:
    """Key of an entry. It names the whole range, so that two owners' entries never replace each other in part."""
    return b"%d/%d-%d" % (partition, first, last)


def deltas_key(partition: int) -> bytes:
    """Key of the `DeltasPosition` of one partition of `issue-deltas`."""
    return _DELTAS + _SEPARATOR + b"%d" % partition


def horizon_key(partition: int) -> bytes:
    """Key of the first offset of `events` whose entry has not expired: below it, nothing is missed."""
    return _HORIZON + _SEPARATOR + b"%d" % partition


def is_entry(key: bytes) -> bool:
    """Whether the key is that of an entry."""
    return key[:1].isdigit()


encode = msgspec.msgpack.Encoder().encode
decode_entry = msgspec.msgpack.Decoder(DedupEntry).decode
decode_position = msgspec.msgpack.Decoder(DeltasPosition).decode
decode_horizon = msgspec.msgpack.Decoder(int).decode
