"""The output of `svc topics cat` for each topic's records."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from aiokafka import ConsumerRecord
from msgspec import Raw

from cli.topics import end_iso, lines, start_ms
from schemas import chunks
from schemas.dead_letters import DeadLetter
from schemas.increments import (
    Description,
    Increment,
    Row,
    SourceIncrements,
    encode_description,
    encode_source,
    join,
)
from schemas.topics import Topic

NOW = datetime(2026, 1, 2, tzinfo=UTC)
EVENT = {"id": "0199ee65-f275-750f-87fc-3665cc81dda7", "error": {"message": "é"}}


def record(value: bytes | None, key: bytes | None = None, headers: Any = ()) -> ConsumerRecord[bytes, bytes]:
    return ConsumerRecord("t", 1, 5, 1_767_312_000_000, 0, key, value, None, -1, len(value or b""), headers)


def chunk() -> bytes:
    event = json.dumps(EVENT).encode()
    return chunks.encode_chunk([chunks.ChunkEvent(7, bytes(16), 1_767_312_000_000, "js/1", event)] * 2)


def test_a_chunk_has_a_line_an_event() -> None:
    rows = list(lines(Topic.EVENTS, record(chunk())))
    assert len(rows) == 2
    assert rows[0] == {
        "partition": 1,
        "offset": 5,
        "at": "2026-01-02T00:00:00.000Z",
        "projectId": "7",
        "receivedAt": "2026-01-02T00:00:00.000Z",
        "sdk": "js/1",
        "event": EVENT,
    }


def test_a_record_of_grouped_has_a_line_a_new_event_with_its_grouping() -> None:
    grouping = chunks.Grouping(255, "v1", "stack", ("TypeError", "f"))
    value = chunks.encode_grouped(chunks.GroupedRecord(1, 4, 0, [1], [0], [grouping], [7], {}, [0]))
    (line,) = lines(Topic.GROUPED, record(value))
    assert (line["source"], line["fingerprint"]) == ("1/4", "00000000000000ff")
    assert line["grouping"] == {"version": "v1", "rule": "stack", "parts": ("TypeError", "f")}
    assert (line["projectId"], line["position"]) == ("7", 1)


def test_increments_have_a_line_each_and_commands_are_printed_unchanged() -> None:
    rows = [Row("a@1+1", "prod", "ios", 490_920, 3)]
    description = Raw(encode_description(Description("E", "m", "f", "v1", "stack", ("p",))))
    one = Increment(9, 7, 255, 3, 1, 2, 3, bytes(16), "a@1+1", "a@1+1", rows, [], description)
    (line,) = lines(Topic.ISSUE_DELTAS, record(join([encode_source(SourceIncrements(1, 4, [one]))])))
    fields = (line["source"], line["projectId"], line["fingerprint"], line["events"])
    assert fields == ("1/4", "7", "00000000000000ff", 3)
    (line,) = lines(Topic.ISSUE_DELTAS, record(b'{"command":{"id":"c"}}'))
    assert line["value"] == {"command": {"id": "c"}}


def test_a_dead_letter_shows_its_origin_and_the_size_of_the_original() -> None:
    letter = DeadLetter("svc.events", 1, 3, "grouper", "not msgpack", "2026-01-02T00:00:00.000Z")
    (line,) = lines(Topic.DEAD_LETTERS, record(b"abc", headers=letter.headers()))
    assert line["deadLetter"]["reason"] == "not msgpack"
    assert line["bytes"] == 3


def test_a_removed_key_shows_no_value() -> None:
    (line,) = lines(Topic.PROJECTS, record(None, b"7"))
    assert (line["key"], line["value"]) == ("7", None)


@pytest.mark.parametrize("topic", [Topic.EVENTS, Topic.GROUPED, Topic.ISSUES, Topic.DEAD_LETTERS])
def test_a_record_of_another_form_is_declared_so(topic: Topic) -> None:
    with pytest.raises(ValueError, match=r".+"):
        list(lines(topic, record(b"\xc1")))


@pytest.mark.parametrize(
    ("text", "ms"),
    [("2h", 1_767_304_800_000), ("7d", 1_766_707_200_000), ("2026-01-01T00:00:00Z", 1_767_225_600_000)],
)
def test_a_start_is_a_time_or_an_age(text: str, ms: int) -> None:
    assert start_ms(text, NOW) == ms


@pytest.mark.parametrize("text", ["", "h", "2w", "yesterday", "-3h"])
def test_any_other_start_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        start_ms(text, NOW)


def test_a_span_is_a_time_from_now_and_a_time_stays_as_it_is() -> None:
    now = datetime(2026, 1, 31, 8, tzinfo=UTC)
    assert end_iso("8h", now) == "2026-01-31T16:00:00.000Z"
    assert end_iso("3d", now) == "2026-02-03T08:00:00.000Z"
    for text in ("2026-02-01T00:00:00Z", "tomorrow", "h"):
        assert end_iso(text, now) == text
