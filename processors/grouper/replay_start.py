"""The grouper's next offset after a restart, and the records that it replays. Pure.

A replay publishes records again exactly as they were decided. Entries of the topic `seen` cover the log of
`events` without a hole. Only the last batch can be recorded and not published, so a restart replays that
batch from its entry. Where entries are missing, processing goes back to the hole. Ids can be restored from
`events`, decisions can't: under rules that have changed since, an event would get another fingerprint and be
counted in two issues. So the last records published in `grouped` are replayed with the fingerprints that they
have there.

| finding of a restart | where | consequence |
| --- | --- | --- |
| horizon | `seen` | no entry is missing before it: they have expired |
| hole | no entry covers an offset after the horizon | the next offset, or the batch start if that is earlier |
| batch start | the last entry | `since`: everything before it was published |
| lost | a hole, or the last entry is merged | the end of `grouped` is read (`grouped_tail`): it gives the boundary |
| boundary (`since`, `last`) | the end of `grouped`; the last entry, until passed | a range perhaps published in part |

So a record from the next offset on is one of these (`batch.decide`):

| its offset | an entry covers it (recorded: `decided`) | none does |
| --- | --- | --- |
| before `since` | only its ids are restored | only its ids are restored |
| `since` to `last` | published again as recorded | its events in `grouped` (`published`), as they are there |
| after `last` | published again as recorded | decided as any other |

With a whole table `since` is the batch start, and there is no `last`.

The ids of all recorded decisions are known from the start. A record whose decision is lost may have one of them, if a
later record carried it again: either it was a dead letter, so the event is read again, or it was a duplicate.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from processors.grouper.dedup_log import DedupEntry, DedupRecord, EntryHead
from schemas.chunks import GroupedRecord


class ReplayStart(NamedTuple):
    """The start of a replay, from the entries of one partition.

    `next_offset` is the first record to read (None: the log's start), `decided` holds the recorded decisions
    from there on. `batch_start` and `boundary` are those of the last entry; `lost` says whether entries are
    missing.
    """

    next_offset: int | None
    decided: dict[int, DedupRecord]
    batch_start: int = 0
    lost: bool = True
    boundary: tuple[int, int] | None = None


def replay_start(entries: Sequence[DedupEntry | EntryHead], start: int) -> ReplayStart:
    """Judge the entries of one partition; `start` is the first offset that they must still cover."""
    if not entries:
        return ReplayStart(None, {})
    newest = max(entries, key=lambda entry: entry.last)
    hole = first_hole(((entry.first, entry.last) for entry in entries), start)
    next_offset = max(start, min(hole, newest.batch_start))
    undone = [entry for entry in entries if entry.last >= next_offset]
    decided = {r.offset: r for entry in undone for r in entry.records if r.offset >= next_offset}
    # The last batch is never merged: without it, the entries of at least one batch are missing after these.
    lost = newest.merged or hole <= newest.last
    return ReplayStart(next_offset, decided, newest.batch_start, lost, newest.boundary)


def first_hole(ranges: Iterable[tuple[int, int]], start: int) -> int:
    """The first offset from `start` on that no range (first and last offset) covers. Ranges may overlap."""
    hole = start
    for first, last in sorted(ranges):
        if first > hole:
            break
        hole = max(hole, last + 1)
    return hole


class PublishedRecord(NamedTuple):
    """A record of `grouped`: the fingerprint of each event by its position in the source record.

    `crc` is the CRC-32 of the source record's value.
    """

    offset: int
    fingerprints: Mapping[int, int]
    crc: int

    @staticmethod
    def of(grouped: GroupedRecord) -> "PublishedRecord":
        """The part of a record of `grouped` that a replay needs."""
        values = [grouped.groupings[index].fingerprint for index in grouped.grouping_of]
        return PublishedRecord(grouped.offset, dict(zip(grouped.kept, values, strict=True)), grouped.crc)


class ReplayBoundary(NamedTuple):
    """Source records up to `last` were decided before; those before `since` were also published, and only restore ids.

    `published` holds the records between as `grouped` has them, by source offset: no other events of them
    were published.
    """

    since: int = 0
    last: int = -1
    published: Mapping[int, PublishedRecord] = {}

    @staticmethod
    def from_records(records: Sequence[PublishedRecord], reach: int, *, whole: bool) -> "ReplayBoundary":
        """The boundary `reach` records before the last of these.

        `whole` says that no earlier record of `grouped` has expired.
        """
        last = max(record.offset for record in records)
        # A record before the first one left may have been published too.
        first = 0 if whole else min(record.offset for record in records)
        return ReplayBoundary.recorded(max(first, last - reach + 1), last, records)

    @staticmethod
    def recorded(since: int, last: int, records: Sequence[PublishedRecord]) -> "ReplayBoundary":
        """The boundary that an earlier process recorded. Of repeated records the first counts, as for all readers."""
        last = max([last, *(record.offset for record in records)])
        return ReplayBoundary(
            since, last, {record.offset: record for record in reversed(records) if record.offset >= since}
        )
