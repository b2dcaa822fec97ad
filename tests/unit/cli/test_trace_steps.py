"""Which dead letters a trace finds: those of an event are compressed with others."""

import pytest
from aiokafka import ConsumerRecord

from cli.trace.trace_steps import copies, letter
from schemas.chunks import ChunkEvent, GroupedRecord, encode_chunk, encode_grouped
from schemas.dead_letters import DeadLetter

EVENT, OTHER = (ChunkEvent(7, bytes([n]) * 16, 5, "js/1", b'{"a":1}' * 50) for n in (1, 2))


def record(value: bytes, headers: list[tuple[str, bytes]] | None = None) -> ConsumerRecord[bytes, bytes]:
    return ConsumerRecord("t", 1, 5, 9, 0, None, value, None, -1, len(value), headers or [])


@pytest.mark.parametrize("grouped", [False, True])
def test_a_dead_letter_is_found_by_an_event_of_its_chunk(grouped: bool) -> None:
    dead = DeadLetter("events", 0, 3, "grouper", "why", "2026-01-01T00:00:00.000Z").headers([])
    value = encode_chunk([EVENT, OTHER])
    if grouped:
        value = encode_grouped(GroupedRecord(0, 3, 0, [0, 1], [0, 0], [], [], {}, [], value))
    found = letter(record(value, dead), EVENT.id, [])
    assert found is not None
    assert found.what == "offset 5: from events 0/3, grouper: why"
    assert letter(record(value, dead), bytes(16), []) is None
    assert letter(record(b"no chunk", dead), EVENT.id, []) is None


def test_a_letter_of_the_writer_is_found_by_its_events_alone() -> None:
    dead = DeadLetter("grouped", 1, 5, "writer", "refused: why", "2026-01-01T00:00:00.000Z").headers([])
    value = encode_grouped(GroupedRecord(1, 5, 0, [0], [0], [], [], {}, [0], encode_chunk([OTHER])))
    (copy,) = copies(record(encode_chunk([EVENT, OTHER])), 7, EVENT.id)
    assert letter(record(value, dead), OTHER.id, [copy]) is not None
    assert letter(record(value, dead), EVENT.id, [copy]) is None


def test_copies_of_an_event_are_found_in_its_chunk() -> None:
    (copy,) = copies(record(encode_chunk([OTHER, EVENT])), 7, EVENT.id)
    assert (copy.position, copy.events, copy.event) == (1, 2, EVENT)
    assert list(copies(record(encode_chunk([OTHER, EVENT])), 8, EVENT.id)) == []
    assert list(copies(record(encode_chunk([OTHER])), 7, EVENT.id)) == []
