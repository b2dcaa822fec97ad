"""Which events a repair leaves to the replay of the dead letters."""

from zlib import crc32

from schemas.chunks import (
    REPLAYED_HEADER,
    ChunkEvent,
    GroupedRecord,
    Grouping,
    decode_grouped,
    encode_chunk,
    encode_grouped,
)
from schemas.dead_letters import DeadLetter
from storage.exactly_once.blocks import Block
from storage.exactly_once.rejections import UNCOUNTED, PutBack, lost_origin
from storage.maintain.reconcile.dead_lettered import DeadLettered
from tests.unit.storage.exactly_once.test_blocks import Record

EVENT = ChunkEvent(7, b"i" * 16, 0, "js/1", b"")
OTHER = ChunkEvent(7, b"o" * 16, 0, "js/1", b"")
KEY, OTHER_KEY = (7, EVENT.id), (7, OTHER.id)


def letter(origin: bytes, topic: str = "svc.grouped", value: bytes | None = None) -> Record:
    headers = DeadLetter(topic, 0, 5, "writer", "refused", "").headers([(REPLAYED_HEADER, origin)])
    chunk = encode_grouped(GroupedRecord(0, 1, 0, [0], [0], [], [], {}, [], encode_chunk([EVENT])))
    return Record(9, chunk if value is None else value, headers=tuple(headers))


def found(*letters: Record) -> DeadLettered:
    dead = DeadLettered()
    for record in letters:
        dead.add_record(record, "svc.grouped")
    return dead


def test_an_event_is_a_dead_letter_until_it_is_put_back() -> None:
    # A block that is repeated writes its dead letters again.
    dead = found(letter(b"0/5"), letter(b"0/5"))
    assert dead.among([KEY, OTHER_KEY]) == {KEY}
    dead.put_back([PutBack(OTHER, "0/5"), PutBack(EVENT, "0/5")])
    assert dead.among([KEY, OTHER_KEY]) == set()


def test_an_event_that_was_put_back_and_refused_again_is_a_dead_letter() -> None:
    dead = found(letter(b"0/5"), letter(b"0/8"))
    dead.put_back([PutBack(EVENT, "0/5")])
    assert dead.among([KEY]) == {KEY}


def test_events_whose_source_was_lost_are_dead_letters_by_the_record_that_they_are_read_from() -> None:
    source = encode_chunk([EVENT])
    value = encode_grouped(
        GroupedRecord(0, 1, crc32(source), [0], [0], [Grouping(1, "v1", "r", ())], [7], {7: (90, 90)}, [0])
    )
    block, origin = Block(), lost_origin(decode_grouped(value)).encode()
    dead = found(letter(origin, value=value))
    block.feed(Record(5, value), source, -1)
    assert dead.among([KEY]) == set()
    dead.read(block.records)
    assert dead.among([KEY]) == {KEY}
    block.feed(Record(9, value, headers=((REPLAYED_HEADER, origin),)), source, 1)
    dead.put_back(block.put_back)
    assert dead.among([KEY]) == set()


def test_a_source_at_the_place_of_one_that_was_lost_is_no_dead_letter() -> None:
    source = encode_chunk([EVENT])
    value = encode_grouped(
        GroupedRecord(0, 1, crc32(source), [0], [0], [Grouping(1, "v1", "r", ())], [7], {7: (90, 90)}, [0])
    )
    dead, block = found(letter(b"0/1/sourceLost/1", value=value)), Block()
    block.feed(Record(5, value), source, -1)
    dead.read(block.records)
    assert dead.among([KEY]) == set()


def test_records_that_are_no_counted_dead_letter_of_the_topic_are_ignored() -> None:
    dead = found(
        letter(UNCOUNTED), letter(b"0/5", "svc.events"), letter(b"0/5", value=b"\xc1"), Record(3, b"")
    )
    assert dead.among([KEY]) == set()
