from collections import Counter
from collections.abc import Callable

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors import BadPayload
from storage.tables import packs
from storage.tables.packs import packed, unpacked

ALONE = bytes(16)


def event_id(number: int) -> bytes:
    return (number + 1).to_bytes(16, "big")


def read(ids: list[bytes], payloads: list[bytes], columns: list[bytes]) -> list[bytes]:
    """The JSON of each event, read as a reader does."""
    rows = dict(zip(ids, zip(payloads, columns, strict=True), strict=True))
    return [
        payload if pack == ALONE else unpacked(rows[pack][0])[event]
        for event, (payload, pack) in rows.items()
    ]


@given(st.lists(st.tuples(st.integers(0, 3), st.binary(max_size=40)), max_size=300))
def test_each_event_is_read_back_and_a_pack_is_of_one_group(events: list[tuple[int, bytes]]) -> None:
    ids, sent = [event_id(number) for number in range(len(events))], [payload for _, payload in events]
    payloads, columns = packed(ids, sent, [group for group, _ in events])
    assert read(ids, payloads, columns) == sent
    groups = {(pack, group) for pack, (group, _) in zip(columns, events, strict=True) if pack != ALONE}
    assert len(groups) == len({pack for pack, _ in groups})
    sizes = Counter(pack for pack in columns if pack != ALONE)
    assert all(2 <= size <= packs.MAX_EVENTS for size in sizes.values())


def test_a_pack_ends_at_its_limits() -> None:
    ids = [event_id(number) for number in range(300)]
    _, columns = packed(ids, [b"{}"] * 300, [0] * 300)
    assert [*Counter(columns).values()] == [128, 128, 44]
    half = b"x" * (packs.MAX_BYTES // 2)
    payloads, columns = packed(ids[:4], [half, half, half, half * 2 + b"x"], [0] * 4)
    # Two fill a pack, the third has no room in it, and the last is too large for any.
    assert columns == [ids[0], ids[0], ALONE, ALONE]
    assert payloads[2:] == [half, half * 2 + b"x"]


def test_events_that_resemble_each_other_take_a_fraction_of_their_bytes() -> None:
    sent = [b'{"error":{"message":"no more of number %d"}}' % number for number in range(100)]
    payloads, _ = packed([event_id(number) for number in range(100)], sent, [0] * 100)
    assert sum(map(len, payloads)) < sum(map(len, sent)) / 2


@pytest.mark.parametrize("change", [lambda pack: pack[:-1], lambda pack: b"{" + pack, lambda pack: pack[4:]])
def test_a_damaged_pack_is_a_bad_payload(change: Callable[[bytes], bytes]) -> None:
    payloads, _ = packed([event_id(1), event_id(2)], [b"{}" * 50, b"{}" * 50], [0, 0])
    with pytest.raises(BadPayload):
        unpacked(change(payloads[0]))


def test_a_pack_that_would_fill_the_memory_is_refused() -> None:
    with pytest.raises(BadPayload, match="large"):
        unpacked(zstandard.compress(bytes(packs.MAX_BYTES * 3)))
