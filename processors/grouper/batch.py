"""The pure part of a take: what one partition's records become. No I/O and no clock; effects follow in `processors.grouper.stage`."""

from collections.abc import Mapping, Sequence
from typing import Final
from zlib import crc32

import msgspec

from processors.grouper.dedup_log import DedupEntry, DedupRecord
from processors.grouper.dedupe import Decision, Dedupe, Incoming
from processors.grouper.fingerprinter import Fingerprinter
from processors.grouper.output import BatchOutput
from processors.grouper.replay import ReplayBoundary
from processors.positions import LogRecreated, SourceRecord
from schemas.chunks import EVENTS_FORMAT, FORMAT_HEADER, ChunkEvent, decode_chunk

ID_BYTES: Final = 16
NO_CHUNK: Final = "not a chunk when it was read first"
MAX_PROJECT: Final = 1 << 32


class BadRecord(Exception):
    """The record is not a chunk of events; the text says why."""


class PartitionState:
    """What is known of one partition of `events`: the offset that is due, the ids seen, and decisions recorded earlier.

    Of records that `boundary` knows as forwarded only ids are remembered.
    """

    def __init__(
        self,
        partition: int,
        dedupe: Dedupe,
        next_offset: int,
        decided: dict[int, DedupRecord],
        boundary: ReplayBoundary = ReplayBoundary(),  # noqa: B008 - it never changes
    ) -> None:
        self.partition = partition
        self.dedupe = dedupe
        self.next_offset = next_offset
        self.decided = decided
        self.boundary = boundary


def read_chunk(source: SourceRecord) -> list[ChunkEvent]:
    """The events of a record. Raises BadRecord."""
    form = dict(source.headers).get(FORMAT_HEADER)
    if form != EVENTS_FORMAT:
        raise BadRecord(f"unknown format {form!r}" if form else "no format header")
    try:
        chunk = decode_chunk(source.value)
    except msgspec.DecodeError as error:
        raise BadRecord(f"not a chunk: {error}") from None
    for event in chunk:
        if len(event.id) != ID_BYTES or not 0 <= event.project < MAX_PROJECT:
            raise BadRecord("not a chunk: an event with a bad id or project")
    return chunk


def process(
    state: PartitionState, sources: Sequence[SourceRecord], grouper: Fingerprinter, emission: BatchOutput
) -> None:
    """Decide about consecutive records that are due and put all that follows from them into `emission`. Raises LogRecreated."""
    chunks: list[list[ChunkEvent] | BadRecord] = []
    for source in sources:
        try:
            chunks.append(read_chunk(source))
        except BadRecord as error:
            chunks.append(error)
    # What was forwarded before goes nowhere.
    nowhere, boundary = BatchOutput(state.partition), state.boundary
    decisions = iter(state.dedupe.decide(list(_undecided(state, sources, chunks))))
    fresh: list[tuple[Decision, DedupRecord]] = []
    for source, chunk in zip(sources, chunks, strict=True):
        known = state.decided.pop(source.offset, None)
        decision = next(decisions) if known is None else None
        out = emission if source.offset >= boundary.since else nowhere
        # What was recorded as no chunk stays one, though a newer version can read it: it comes back from the dead letters.
        unread = known is not None and not known.total and chunk
        if isinstance(chunk, BadRecord) or unread:
            out.bad_record(source, str(chunk) if isinstance(chunk, BadRecord) else NO_CHUNK)
            record = DedupRecord(source.offset, 0, [], b"")
        else:
            forwarded = None if known else _told(state, source)
            record = out.record(source, chunk, known or _open(source, chunk, decision), grouper, forwarded)
        if decision is not None:
            _forget_dead(state, decision, record)
            fresh.append((decision, record))
    # While what was decided before is not all taken up again, entries say so: after them nothing else would.
    noted = (boundary.since, boundary.last) if state.next_offset <= boundary.last else None
    state.next_offset += len(sources)
    # Records decided earlier may stand before the fresh ones: a crash from here on leaves them unforwarded too.
    emission.entries = _entries(fresh, sources[0].offset if sources else 0, noted)


def _undecided(
    state: PartitionState, sources: Sequence[SourceRecord], chunks: Sequence[list[ChunkEvent] | BadRecord]
) -> list[Incoming]:
    return [
        Incoming(source.offset, source.timestamp_ms, (), ())
        if isinstance(chunk, BadRecord)
        else Incoming(source.offset, source.timestamp_ms, [e.project for e in chunk], [e.id for e in chunk])
        for source, chunk in zip(sources, chunks, strict=True)
        if source.offset not in state.decided
    ]


def _told(state: PartitionState, source: SourceRecord) -> Mapping[int, int] | None:
    """The fingerprints of what was forwarded of a record, if that is known. Raises LogRecreated."""
    boundary = state.boundary
    if not boundary.since <= source.offset <= boundary.last:
        return None
    forwarded = boundary.forwarded.get(source.offset)
    if forwarded is not None and forwarded.crc != crc32(source.value):
        raise LogRecreated(f"events/{state.partition}/{source.offset} is not what stands in grouped")
    return {} if forwarded is None else forwarded.values


def _open(source: SourceRecord, chunk: list[ChunkEvent], decision: Decision | None) -> DedupRecord:
    assert decision is not None
    new = None if len(decision.new) == len(chunk) else decision.new
    return DedupRecord(source.offset, len(chunk), new, decision.keys)


def _forget_dead(state: PartitionState, decision: Decision, record: DedupRecord) -> None:
    """An event that could not be processed may be put back later: its id must not count as seen."""
    dead = set(record.dead)
    if not dead:
        return
    for place, position in enumerate(decision.new):
        if position in dead:
            state.dedupe.forget(decision.keys[place * ID_BYTES : (place + 1) * ID_BYTES])


def _entries(
    fresh: list[tuple[Decision, DedupRecord]], batch_start: int, boundary: tuple[int, int] | None
) -> list[DedupEntry]:
    """The records as entries, each of one day of the log; `batch_start` is the first offset that was handled together with them."""
    entries: list[DedupEntry] = []
    day = -1
    for decision, record in fresh:
        if decision.clock.day != day:
            day = decision.clock.day
            entries.append(
                DedupEntry(decision.watermark_ms, batch_start, [], boundary=boundary, clock=decision.clock)
            )
        entries[-1].records.append(record)
    return entries
