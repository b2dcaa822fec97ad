from collections.abc import Mapping
from dataclasses import dataclass, field
from zlib import crc32

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from schemas.chunks import (
    REPLAYED_HEADER,
    ChunkEvent,
    GroupedRecord,
    Grouping,
    decode_chunk,
    decode_grouped,
    encode_chunk,
    encode_grouped,
)
from schemas.ids import uuid7
from storage.exactly_once.block_plan import RecordRange
from storage.exactly_once.block_tokens import ServerMark
from storage.exactly_once.blocks import Block
from storage.exactly_once.rejections import UNCOUNTED, Headers, sent_again
from storage.write.rejected_records import dead_letter_outcomes, put_back_outcomes
from tests.unit.query.test_event_fields import EVENT

MARK = ServerMark(1, (0,), 1)
FRAME = msgspec.json.encode(EVENT)


@dataclass(frozen=True)
class Record:
    offset: int
    value: bytes | None
    partition: int = 0
    timestamp: int = 0
    headers: Headers = field(default=())


_DAYS: Mapping[int, tuple[int, int]] = {7: (90, 90)}


def chunk(
    source: int,
    payloads: list[bytes],
    retention: Mapping[int, tuple[int, int]] = _DAYS,
) -> bytes:
    events = [ChunkEvent(7, uuid7().bytes, 1_760_000_000_000, "js/1", payload) for payload in payloads]
    return encode_grouped(
        GroupedRecord(
            0,
            source,
            0,
            list(range(len(events))),
            [0] * len(events),
            [Grouping(1, "v1", "r", ())],
            [7],
            dict(retention),
            [0],
            encode_chunk(events),
        )
    )


def feed(block: Block, records: list[Record], seen: int = -1) -> int:
    for record in records:
        seen = block.feed(record, None, seen)
    return seen


def test_a_row_is_stored_for_as_long_as_its_record_says() -> None:
    block = Block()
    feed(block, [Record(0, chunk(0, [FRAME], {7: (365, 14)})), Record(1, chunk(1, [FRAME], {}))])
    [row] = block.columns.table().select(["retention_days", "payload_days"]).to_pylist()
    assert tuple(row.values()) == (365, 14)
    assert [(one.offset, one.kind) for one in block.rejected] == [(1, "unreadable")]


def test_two_copies_of_a_letter_are_one_event_that_came_back_once() -> None:
    block = Block()
    value, headers = chunk(3, [FRAME]), ((REPLAYED_HEADER, b"0/4"),)
    feed(block, [Record(9, value, headers=headers), Record(10, value, headers=headers)], seen=8)
    assert (len(block), block.by_id) == (1, True)
    first, second = put_back_outcomes(block.put_back)
    assert first == second
    assert (first.outcome, first.reason, first.count, first.sequence) == ("accepted", "putBack", 1, 4)


def test_events_put_back_were_dead_letters_even_if_the_writer_ended_before_it_counted_them() -> None:
    block, again = Block(), Block()
    feed(block, [Record(4, chunk(3, [b"broken", b"broken"]))])
    feed(again, [Record(9, one.value, headers=one.headers) for one in block.rejected], seen=8)
    counted = list(dead_letter_outcomes(block.rejected))
    assert [one.outcome for one in counted] == ["deadLettered"] * 2
    reported = list(put_back_outcomes(again.put_back))
    assert [one for one in reported if one.outcome == "deadLettered"] == counted
    assert [one.reason for one in reported if one.outcome == "accepted"] == ["putBack"] * 2


def test_an_unreadable_record_is_taken_whole_once_it_can_be_read_and_counts_for_nothing() -> None:
    block = Block()
    feed(block, [Record(0, b"\xc1", headers=(("trace", b"x"),))])
    (rejected,) = block.rejected
    assert rejected.headers == (("trace", b"x"), (REPLAYED_HEADER, UNCOUNTED))
    again = Block()
    assert feed(again, [Record(9, chunk(3, [FRAME, FRAME]), headers=rejected.headers)], seen=8) == 8
    assert (len(again), again.by_id, again.put_back) == (2, True, [])


def test_records_that_may_be_stored_already_are_decided_by_their_ids() -> None:
    old, new = Block(), Block()
    old.feed(Record(7, chunk(4, [FRAME])), None, -1, verify_until=5)
    new.feed(Record(1, chunk(5, [FRAME])), None, 4, verify_until=5)
    assert (old.by_id, new.by_id) == (True, False)
    assert old.plan(MARK).ranges == (RecordRange(0, 7, 7, -1, 5),)


def test_a_value_that_is_no_chunk_is_refused_whole() -> None:
    block = Block()
    assert feed(block, [Record(0, b"\xc1"), Record(1, None)], seen=4) == 4
    assert [(one.kind, one.value) for one in block.rejected] == [
        ("undecodable", b"\xc1"),
        ("undecodable", b""),
    ]
    assert block.plan(MARK).ranges == (RecordRange(0, 0, 1, 4),)


def test_an_unreadable_event_is_refused_alone_and_can_be_put_back() -> None:
    block = Block()
    feed(block, [Record(0, chunk(2, [FRAME, b"broken", FRAME]))])
    assert len(block) == 2
    (rejected,) = block.rejected
    again = decode_grouped(rejected.value)
    assert [one.payload for one in decode_chunk(again.chunk)] == [b"broken"]
    assert (REPLAYED_HEADER, b"0/0/unreadable") in rejected.headers


SOURCE = encode_chunk([ChunkEvent(project, uuid7().bytes, 61_000, "js/1", FRAME) for project in (7, 8, 8)])
DECISIONS = encode_grouped(
    GroupedRecord(
        partition=0,
        offset=5,
        crc=crc32(SOURCE),
        kept=[0, 1, 2],
        grouping_of=[0, 1, 1],
        groupings=[Grouping(1, "v1", "r", ())] * 2,
        projects=[7, 8],
        retention={7: (90, 90), 8: (90, 90)},
        minutes=[1],
    )
)


def test_the_events_of_a_record_are_those_of_its_source() -> None:
    block = Block()
    assert block.feed(Record(3, DECISIONS), SOURCE, -1) == 5
    assert (len(block), block.rejected) == (3, [])


@pytest.mark.parametrize("found", [None, encode_chunk([])], ids=["expired", "another record"])
def test_a_lost_source_counts_by_project_and_minute_once_for_all_records_about_it(
    found: bytes | None,
) -> None:
    block, again = Block(), Block()
    assert block.feed(Record(3, DECISIONS), found, -1) == 5
    [rejected] = block.rejected
    assert (len(block), rejected.kind, rejected.value) == (0, "sourceLost", DECISIONS)
    counted = list(dead_letter_outcomes([rejected]))
    assert [(one.project_id, one.count, one.minute) for one in counted] == [
        ("7", 1, "1970-01-01T00:01:00.000Z"),
        ("8", 2, "1970-01-01T00:01:00.000Z"),
    ]
    whole = ((REPLAYED_HEADER, UNCOUNTED),)
    for offset, headers in (8, rejected.headers), (9, rejected.headers), (10, whole), (11, whole):
        again.feed(Record(offset, DECISIONS, headers=headers), found, 8)
    assert list(dead_letter_outcomes(again.rejected)) == counted * 4
    assert {one.headers for one in again.rejected} == {rejected.headers}


def test_the_events_of_a_lost_source_count_in_the_minutes_of_their_receipt() -> None:
    record = replace(decode_grouped(DECISIONS), minutes=[1, 2, 3])
    block = Block()
    block.feed(Record(3, encode_grouped(record)), None, -1)
    [rejected] = block.rejected
    assert rejected.lost is not None
    assert rejected.lost.events == {(7, 1): 1, (8, 2): 1, (8, 3): 1}


def test_a_lost_source_that_is_found_after_all_is_accepted_once_however_often_it_is_put_back() -> None:
    block, again = Block(), Block()
    block.feed(Record(3, DECISIONS), None, -1)
    [rejected] = block.rejected
    for offset in (9, 10):
        again.feed(Record(offset, DECISIONS, headers=rejected.headers), SOURCE, 8)
    assert (len(again), again.by_id, again.rejected) == (3, True, [])
    counted = list(dead_letter_outcomes([rejected]))
    accepted = [replace(one, outcome="accepted", reason="putBack") for one in counted]
    assert list(put_back_outcomes(again.put_back)) == [*accepted, *counted]


def test_a_lost_source_that_may_be_stored_already_is_passed_over() -> None:
    block = Block()
    assert block.feed(Record(3, DECISIONS), None, -1, verify_until=6) == 5
    assert (len(block), block.rejected, block.passed_over) == (0, [], 1)
    assert block.plan(MARK).ranges == (RecordRange(0, 3, 3, -1, 6),)


def test_a_refused_row_is_traced_to_its_event() -> None:
    block = Block()
    first, second = Record(4, chunk(2, [FRAME, FRAME])), Record(5, chunk(3, [b"broken", FRAME, FRAME]))
    feed(block, [first, second])
    wanted = decode_chunk(decode_grouped(second.value or b"").chunk)[2]
    rejected = block.rejection(3, 7, wanted.id, "too odd")
    assert (rejected.offset, rejected.event) == (5, wanted)


def test_an_event_that_is_refused_again_with_its_first_copy_is_a_dead_letter_once_more() -> None:
    first, again = Record(4, chunk(2, [FRAME])), Block()
    [event] = decode_chunk(decode_grouped(first.value or b"").chunk)
    block = Block()
    feed(block, [first])
    letter = block.rejection(0, 7, event.id, "too odd")
    feed(again, [first, Record(9, letter.value, headers=letter.headers)])
    assert [letter.offset, again.rejection(0, 7, event.id, "too odd").offset] == [4, 9]


@given(st.data())
def test_however_often_processors_repeat_each_source_record_is_taken_once(data: st.DataObject) -> None:
    """A processor that crashed starts again at a source position at or before the one it had reached."""
    sources: list[int] = []
    at = 0
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, at))
        steps = data.draw(st.integers(1, 5))
        sources += range(at, at + steps)
        at += steps
    records = [Record(offset, chunk(source, [FRAME])) for offset, source in enumerate(sources)]
    cut = data.draw(st.integers(0, len(records)))
    before, after = Block(), Block()
    seen = feed(before, records[:cut])
    feed(after, records[cut:], seen)
    assert len(before) + len(after) == len(set(sources))


def test_events_sent_again_are_completed_by_ids_and_change_no_outcome() -> None:
    record = Record(3, chunk(5, [FRAME, FRAME, FRAME], {7: (30, 7)}), headers=(("trace", b"x"),))
    whole = Block()
    feed(whole, [record])
    [part] = whole.records
    wanted = {(event.project, event.id) for event, _ in [*part.new()][1:]}
    value, headers, keys = sent_again(part, wanted | {(7, b"elsewhere")})
    assert keys == wanted
    assert headers == (("trace", b"x"), (REPLAYED_HEADER, UNCOUNTED))
    block = Block()
    assert feed(block, [Record(9, value, headers=headers)], 7) == 7
    assert (len(block), block.by_id, block.put_back, block.rejected) == (2, True, [], [])
    assert block.columns.table()["retention_days"].to_pylist() == [30, 30]
