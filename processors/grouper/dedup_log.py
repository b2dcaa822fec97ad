"""The table `seen`: its keys, and the values that the grouper writes.

| key | value | written by | it says |
| --- | --- | --- | --- |
| `P/FIRST-LAST/EPOCH` | `DedupEntry` | grouper | the ids first seen in these records of `events`, and the decisions |
| `horizon/P` | an offset of `events` | grouper | the entries before it have expired: none is missing |
| `deltas/P` | `processors.aggregator.position.DeltasPosition` | aggregator | how far `issue-deltas` is folded |

`P` is the partition that the key is in. `svc rebuild` writes all three. The topic alone, not the table, also
has the records `owner` and `check` of the process that holds the partition (`processors.changelog`).
"""

from typing import Final

import msgspec
from msgspec import Struct

from processors.grouper.log_clock import LogClock
from schemas.times import DAY_MS

KEY_BYTES: Final = 16
"""Bytes of an id's key (`processors.grouper.id_index.id_keys`)."""
DISCARDED: Final = 0
DROP_REASONS: Final = {DISCARDED: "discarded"}
"""Why an event is dropped, by the number that is recorded instead of a fingerprint.

A number is below `grouping.fingerprint.key.LEAST` and keeps its reason for ever: outcomes are counted by reason, so
a replay must find the same one. The outcome is `deadLettered`, though no dead letter is written, so that
accepted = stored + duplicate + deadLettered holds (contract, section 2, point 14).
"""


class DedupRecord(Struct, array_like=True, frozen=True, gc=False):
    """Decisions about one record of `events`.

    - `new`: the positions in its chunk whose ids it was the first to carry (None: all of `total`).
    - `keys`: the joined keys of these ids.
    - `fingerprints`: 8 bytes little-endian for each (a number of `DROP_REASONS` for a dropped event); empty
      once the record has been published and merged.
    - `dead`: the positions that could not be processed.
    - `ahead`: the joined keys of ids whose own day was in the future, by the number of days. An expired
      record keeps these keys alone.

    The last two are nearly always empty, and empty tuples take no time to decode.
    """

    offset: int
    total: int
    new: list[int] | None
    keys: bytes
    fingerprints: bytes = b""
    dead: tuple[int, ...] = ()
    ahead: tuple[tuple[int, bytes], ...] = ()

    @property
    def positions(self) -> list[int]:
        return list(range(self.total)) if self.new is None else self.new

    @property
    def is_bad(self) -> bool:
        """Whether the record, or an event of it, was dead-lettered: a chunk without events is not."""
        return bool(self.dead) or not (self.total or self.keys or self.ahead)


class DedupEntry(Struct, array_like=True, frozen=True):
    """Consecutive records of one partition of `events`, decided together and all of one day of the log.

    - `watermark_ms`: the greatest record timestamp so far.
    - `batch_start`: the first offset of the batch, in this entry or an earlier one; the offset after the
      entry once all of the batch is known to be published.
    - `merged`: an old entry, of which everything has been published.
    - `boundary`: `since` and `last` of the `processors.grouper.replay_start.ReplayBoundary`, in entries that are
      written again after the topic was emptied.
    - `clock`: the log's clock after the records (None in entries of `svc rebuild`, whose day is the watermark's).
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
    def only_ahead(self) -> bool:
        """Whether nothing but ids of future days is left of the entry."""
        return any(record.ahead for record in self.records) and not self.ids

    @property
    def last_needed(self) -> int:
        """The last day of the log whose ids the entry still holds."""
        if not self.only_ahead:
            return self.day
        return self.day + max(days for record in self.records for days, _ in record.ahead)

    @property
    def first(self) -> int:
        return self.records[0].offset

    @property
    def last(self) -> int:
        return self.records[-1].offset

    @property
    def ids(self) -> int:
        return sum(len(record.keys) for record in self.records) // KEY_BYTES

    @property
    def ids_ahead(self) -> int:
        """How many ids of the future it holds."""
        return sum(len(keys) for record in self.records for _, keys in record.ahead) // KEY_BYTES


class EntryHead(Struct, frozen=True):
    """An entry of the table without its records, which are decoded when they are asked for."""

    value: bytes
    watermark_ms: int
    batch_start: int
    first: int
    last: int
    day: int
    last_needed: int
    merged: bool
    boundary: tuple[int, int] | None
    clock: LogClock | None

    @staticmethod
    def of(value: bytes, entry: DedupEntry) -> "EntryHead":
        """The head of an entry with this value."""
        return EntryHead(value, *[getattr(entry, name) for name in EntryHead.__struct_fields__[1:]])

    @property
    def records(self) -> list[DedupRecord]:
        return decode_entry(self.value).records


def entry_key(partition: int, first: int, last: int, epoch: int | None = None) -> bytes:
    """Key of an entry: the range, so that entries never replace each other in part, and the epoch of its owner.

    Readers drop an earlier owner's late write. Under the same key, Kafka's compaction would keep it alone.
    Merged entries need none: a missing one leaves a hole, which a recovery finds.
    """
    key = b"%d/%d-%d" % (partition, first, last)
    return key if epoch is None else b"%s/%d" % (key, epoch)


def horizon_key(partition: int) -> bytes:
    """Key of the first offset of `events` whose entry has not expired: no entry is missing before it."""
    return b"horizon/%d" % partition


def is_entry(key: bytes) -> bool:
    """Whether the key is that of an entry."""
    return key[:1].isdigit()


encode = msgspec.msgpack.Encoder().encode
decode_entry = msgspec.msgpack.Decoder(DedupEntry).decode
decode_horizon = msgspec.msgpack.Decoder(int).decode
