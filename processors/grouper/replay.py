"""What was forwarded before the topic `seen` was emptied, as the topic `grouped` tells it.

Ids can be taken up again from `events`, but decisions can't: under rules that have changed since, an event would get another
fingerprint and be counted in two issues. What stands in `grouped` was decided, and all before it; so up to its last source position
records are only looked through for ids. But the last take may not have been forwarded wholly, so the last records of all are forwarded again,
with the fingerprints that stand there.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple
from zlib import crc32

from schemas.chunks import GroupedChunk


class ForwardedRecord(NamedTuple):
    """A record of `grouped`: the fingerprint of each event in it by position in its source, whose value has this CRC-32."""

    offset: int
    values: Mapping[int, int]
    crc: int

    @staticmethod
    def of(grouped: GroupedChunk) -> "ForwardedRecord":
        """What a record tells."""
        values = [grouped.groupings[place].fingerprint for place in grouped.grouping_of]
        return ForwardedRecord(
            grouped.offset, dict(zip(grouped.kept, values, strict=True)), crc32(grouped.chunk)
        )


class ReplayBoundary(NamedTuple):
    """Records up to `last` were decided before, those before `since` forwarded too.

    `forwarded` is what stands in `grouped` of the others, by source offset: no other events of them were forwarded.
    """

    since: int = 0
    last: int = -1
    forwarded: Mapping[int, ForwardedRecord] = {}

    @staticmethod
    def by(records: Sequence[ForwardedRecord], reach: int, *, whole: bool) -> "ReplayBoundary":
        """What the last records of `grouped` tell; `whole` says that nothing before them has expired."""
        last = max(record.offset for record in records)
        # Before the first one that is left, what has no record may have had one.
        first = 0 if whole else min(record.offset for record in records)
        return ReplayBoundary.known(max(first, last - reach + 1), last, records)

    @staticmethod
    def known(since: int, last: int, records: Sequence[ForwardedRecord]) -> "ReplayBoundary":
        """The same with places that were found before. Of repeats the first counts, as for all readers."""
        last = max([last, *(record.offset for record in records)])
        return ReplayBoundary(
            since, last, {one.offset: one for one in reversed(records) if one.offset >= since}
        )
