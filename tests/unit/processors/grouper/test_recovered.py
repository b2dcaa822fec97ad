"""What was decoded while the table was read is used where the table still says it, and changes nothing."""

import random
from collections.abc import Sequence

import pytest

from processors.grouper.compaction import Changes, LogCompaction
from processors.grouper.dedup_log import KEY_BYTES, DedupEntry, DedupRecord, encode, entry_key
from processors.grouper.id_index import id_keys
from processors.grouper.log_clock import LogClock
from processors.grouper.read_ahead import ReadAhead
from processors.grouper.recovered import Piece, Recovered, recovered
from schemas.times import DAY_MS
from tests.unit.processors.made import START, event_id

DAYS = 2
RECORDS = 80
FIRST_DAY = START // DAY_MS


def keys_of(offset: int) -> bytes:
    return id_keys([1, 1, 1], [event_id(3 * offset + n) for n in range(3)])


def history(rng: random.Random) -> Changes:
    """What a worker writes to the table, which it merges, and of which days expire."""
    part: dict[bytes, bytes] = {}
    compaction, written, day = LogCompaction(0, {}), list[tuple[bytes, bytes | None]](), FIRST_DAY

    def write(changes: Changes) -> None:
        for key, value in changes:
            part.pop(key, None) if value is None else part.__setitem__(key, value)
        written.extend(changes)

    for offset in range(RECORDS):
        day += rng.random() < 0.1
        keys = keys_of(offset)
        ahead = ((rng.randrange(1, 5), keys[-KEY_BYTES:]),) if rng.random() < 0.2 else ()
        record = DedupRecord(offset, 3, None, keys, dead=(0,) * (rng.random() < 0.2), ahead=ahead)
        entry = DedupEntry(day * DAY_MS, offset, [record], clock=LogClock(day, day, offset))
        write([(entry_key(0, offset, offset), encode(entry))])
        compaction.add([entry])
        if compaction.needed(day - DAYS):
            for changes in compaction.compact(part, day - DAYS):
                write(changes)
    return written


async def read(written: Changes, rng: random.Random) -> tuple[dict[bytes, bytes], list[Piece]]:
    """The table after these changes, and what was decoded meanwhile."""
    ahead, part, at = ReadAhead(), dict[bytes, bytes](), 0
    ahead.hold({0})
    while at < len(written):
        batch = written[at : at + rng.randrange(1, 9)]
        at += len(batch)
        for key, value in batch:
            part.pop(key, None) if value is None else part.__setitem__(key, value)
        ahead.read(0, batch)
    return part, await ahead.pieces(0)


def learned(part: dict[bytes, bytes], pieces: Sequence[Piece]) -> tuple[object, ...]:
    """What a start learns."""
    found: Recovered = recovered(0, part, pieces, 0, DAYS, 10)
    oldest = found.dedupe.oldest_day
    known = found.dedupe._index.known(b"".join(map(keys_of, range(RECORDS))))
    return found.start, known, oldest, found.latest, list(found.entries.compact(part, oldest + 1))


async def test_what_was_decoded_early_changes_nothing_wherever_the_log_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("processors.grouper.compaction.MERGE_AT", 4)
    monkeypatch.setattr("processors.grouper.compaction.BLOCK_IDS", 8)
    monkeypatch.setattr("processors.grouper.recovered.PIECE_BYTES", 600)
    monkeypatch.setattr("processors.grouper.read_ahead.PIECE_BYTES", 600)
    used = superseded = 0
    for seed in range(150):
        rng = random.Random(seed)
        written = history(rng)
        part, pieces = await read(written[: rng.randrange(20, len(written))], rng)
        assert learned(part, pieces) == learned(part, [])
        used += sum(bool(piece.heads) and piece.is_in(part) for piece in pieces)
        superseded += sum(not piece.is_in(part) for piece in pieces)
    assert used > 150
    assert superseded > 150


async def test_an_entry_that_cannot_be_decoded_matters_only_while_the_table_holds_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("processors.grouper.read_ahead.PIECE_BYTES", 1)
    record = DedupRecord(0, 3, None, keys_of(0))
    whole = encode(DedupEntry(START, 0, [record], merged=True))
    ahead = ReadAhead()
    ahead.hold({0})
    ahead.read(0, [(entry_key(0, 0, 0), b"\xc1")])
    ahead.read(0, [(entry_key(0, 0, 0), whole)])
    [piece] = await ahead.pieces(0)
    assert len(recovered(0, {entry_key(0, 0, 0): whole}, [piece], 0, DAYS, 10).dedupe) == 3


async def test_only_active_partitions_are_decoded_and_a_restored_one_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("processors.grouper.read_ahead.PIECE_BYTES", 1)
    entry = encode(DedupEntry(START, 0, [DedupRecord(0, 3, None, keys_of(0))], merged=True))
    ahead = ReadAhead()
    ahead.hold({0, 1})
    for partition in range(3):
        ahead.read(partition, [(entry_key(partition, 0, 0), entry)])
    assert [len(await ahead.pieces(partition)) for partition in range(3)] == [1, 1, 0]
    ahead.forget(0)
    assert [len(await ahead.pieces(partition)) for partition in range(3)] == [0, 1, 0]
    ahead.hold({0, 2})
    ahead.hold({0, 1, 2})
    assert [len(await ahead.pieces(partition)) for partition in range(3)] == [0, 0, 0]
