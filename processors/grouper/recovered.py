"""A partition's state from the table `seen`: the next offset, the ids, and the keys of the entries. Pure.

The entries are decoded piece by piece: decoded, all of them would take several times their memory.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Final, NamedTuple

from processors.grouper.compaction import LogCompaction
from processors.grouper.dedup_log import EntryHead, decode_entry, decode_horizon, horizon_key, is_entry
from processors.grouper.dedupe import Dedupe, SortedIds
from processors.grouper.replay_start import ReplayStart, replay_start

PIECE_BYTES: Final = 8 << 20
"""Bytes of the entries of a piece: half a million ids. With smaller ones look-ups would search more runs."""


class Piece(NamedTuple):
    """Some entries by key, and their ids."""

    heads: dict[bytes, EntryHead]
    ids: SortedIds

    @staticmethod
    def of(values: Mapping[bytes, bytes]) -> "Piece":
        """Decode entries."""
        entries = {key: decode_entry(value) for key, value in values.items()}
        heads = {key: EntryHead.of(values[key], entry) for key, entry in entries.items()}
        return Piece(heads, SortedIds.of(list(entries.values())))


class Recovered(NamedTuple):
    """`latest` are the times of the last records, and whether they are bad."""

    start: ReplayStart
    dedupe: Dedupe
    entries: LogCompaction
    latest: list[tuple[int, bool]]


def recovered(
    partition: int, part: Mapping[bytes, bytes], log_start: int, days: int, latest: int
) -> Recovered:
    """A partition's state from its table, with so many latest records."""
    pieces = [Piece.of(values) for values in _pieces((k, v) for k, v in part.items() if is_entry(k))]
    heads = {key: head for piece in pieces for key, head in piece.heads.items()}
    horizon = part.get(horizon_key(partition))
    start = replay_start(list(heads.values()), max(log_start, decode_horizon(horizon) if horizon else 0))
    dedupe = Dedupe(days)
    dedupe.restore_sorted(heads.values(), (piece.ids for piece in pieces))
    return Recovered(start, dedupe, LogCompaction(partition, heads), _latest(heads.values(), latest))


def _pieces(entries: Iterable[tuple[bytes, bytes]]) -> Iterator[dict[bytes, bytes]]:
    piece: dict[bytes, bytes] = {}
    size = 0
    for key, value in entries:
        piece[key] = value
        size += len(value)
        if size >= PIECE_BYTES:
            yield piece
            piece, size = {}, 0
    if piece:
        yield piece


def _latest(entries: Iterable[EntryHead], count: int) -> list[tuple[int, bool]]:
    ordered = sorted(entries, key=lambda entry: entry.last, reverse=True)
    latest = ((entry.watermark_ms, r.is_bad) for entry in ordered for r in reversed(entry.records))
    return list(islice(latest, count))
