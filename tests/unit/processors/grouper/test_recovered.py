"""A start learns the same from the table, however few entries it decodes at a time."""

import random

import pytest

from processors.grouper.compaction import LogCompaction
from processors.grouper.dedup_log import KEY_BYTES, DedupEntry, DedupRecord, encode, entry_key
from processors.grouper.id_index import id_keys
from processors.grouper.log_clock import LogClock
from processors.grouper.recovered import Recovered, recovered
from schemas.times import DAY_MS
from tests.long_forms import first_quick
from tests.unit.processors.made import START, apply, event_id

DAYS = 2
RECORDS = 80
FIRST_DAY = START // DAY_MS


def keys_of(offset: int) -> bytes:
    return id_keys([1, 1, 1], [event_id(3 * offset + n) for n in range(3)])


def table(rng: random.Random) -> dict[bytes, bytes]:
    """Entries that a worker wrote to the table, those that it merged, and those of expired days."""
    part: dict[bytes, bytes] = {}
    compaction, day = LogCompaction(0, {}), FIRST_DAY

    for offset in range(rng.randrange(20, RECORDS)):
        day += rng.random() < 0.1
        keys = keys_of(offset)
        ahead = ((rng.randrange(1, 5), keys[-KEY_BYTES:]),) if rng.random() < 0.2 else ()
        record = DedupRecord(offset, 3, None, keys, dead=(0,) * (rng.random() < 0.2), ahead=ahead)
        entry = DedupEntry(day * DAY_MS, offset, [record], clock=LogClock(day, day, offset))
        key = entry_key(0, offset, offset, epoch=0)
        apply(part, [(key, encode(entry))])
        compaction.add_entries({key: entry})
        if compaction.needed(day - DAYS):
            for changes in compaction.compact(part, day - DAYS):
                apply(part, changes)
    return part


def learned(part: dict[bytes, bytes]) -> tuple[object, ...]:
    """The state that a start recovers."""
    found: Recovered = recovered(0, part, 0, DAYS, 10)
    oldest = found.dedupe.oldest_day
    known = found.dedupe._index.known(b"".join(map(keys_of, range(RECORDS))))
    return found.start, known, oldest, found.latest, list(found.entries.compact(part, oldest + 1))


@pytest.mark.parametrize("seeds", first_quick([range(15), range(50)]))
def test_a_start_learns_the_same_from_pieces_of_every_size(
    seeds: range, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("processors.grouper.compaction.MERGE_AT", 4)
    monkeypatch.setattr("processors.grouper.compaction.BLOCK_IDS", 8)
    for seed in seeds:
        part = table(random.Random(seed))
        whole = learned(part)
        for size in (1, 600):
            with monkeypatch.context() as smaller:
                smaller.setattr("processors.grouper.recovered.PIECE_BYTES", size)
                assert learned(part) == whole
