"""Every later stage reads all accepted events: grouping, rules, columns, packs, API, page and the tools.

The values are those that one parser of JSON takes and another doesn't.
"""

import json
import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.fingerprint_lines import explain
from cli.send.send_batches import is_json
from cli.topics import lines
from dashboard.view.event_sections import read
from edge.validation.validate import LENIENT, STRICT, InvalidEvents, ValidationRules, validate
from grouping.trial import PastEvent, run_trial
from processors.grouper.fingerprinter import Fingerprinter
from query.event_view import from_json
from schemas.chunks import ChunkEvent, encode_chunk
from schemas.json_values import decode_any
from schemas.limits import MAX_DEPTH
from schemas.projects import ProjectRegistry
from schemas.topics import Topic
from storage.read.events.event_rows import readable
from storage.tables.event_columns import EventColumns
from storage.tables.packs import unpacked
from tests.edge_events import event
from tests.unit.cli.test_topics import record

NUMBERS = [
    "1E+400", "-1e999", "1e-400", "0e999999999999999999", "-0", "-0.0", "1" + "0" * 400, "-" + "9" * 5000,
    "9" * 5000 + ".5", "1." + "0" * 5000, "18446744073709551616", "-9223372036854775809", "1.7976931348623159e308",
]  # fmt: skip
STRINGS = [
    r'"\u0000"', r'"a\u0000b"', r'"\ud83d"', r'"\ude00\ud83d"', r'"\ud83d\ud83d\ude00"', r'"\\ud83d"', r'"\uFFFF"',
    r'"\/\b\f"', '"\u2028"', '"\x7f"', '"' + "k" * 100_000 + '"',
]  # fmt: skip
DEPTHS = [1, 100, MAX_DEPTH - 10, MAX_DEPTH - 3]
PLACES: list[tuple[str | int, ...]] = [
    ("unknown",), ("device", "unknown"), ("app", "framework", "unknown"), ("user", "unknown"), ("error", "unknown"),
    ("error", "stack", 0, "unknown"), ("error", "cause", "unknown"), ("breadcrumbs", 4, "unknown"),
    ("breadcrumbs", 4, "data", "anything"), ("breadcrumbs", 1, "data", "unknown"), ("fingerprint",),
    ("error", "message"), ("error", "type"), ("error", "stack", 0, "function"), ("error", "stack", 0, "file"),
    ("error", "stack", 0, "line"), ("breadcrumbs", 1, "data", "durationMs"), ("tags", "feature"), ("user", "id"),
    ("device", "model"), ("release",), ("environment",), ("traceId",),
]  # fmt: skip
MARK = "put the value here"

scalars = st.sampled_from([*NUMBERS, *STRINGS])


@st.composite
def values(draw: st.DrawFn) -> str:
    """The text of a value, possibly nested, or as a key."""
    text = draw(scalars)
    form = draw(st.sampled_from(["alone", "list", "key", "twice", "deep"]))
    match form:
        case "list":
            return f"[{text},{draw(scalars)}]"
        case "key":
            return f"{{{draw(st.sampled_from(STRINGS))}:{text}}}"
        case "twice":
            return f'{{"a":{text},"a":{draw(scalars)}}}'
        case "deep":
            depth = draw(st.sampled_from(DEPTHS))
            return "[" * depth + text + "]" * depth
    return text


@st.composite
def bodies(draw: st.DrawFn) -> bytes:
    """An event with such a value in one or two places."""
    whole: Any = event()
    put = draw(st.lists(st.sampled_from(PLACES), min_size=1, max_size=2, unique=True))
    for number, (*way, last) in enumerate(put):
        parent = whole
        for step in way:
            parent = parent[step]
        parent[last] = [f"{MARK} {number}"] if last == "fingerprint" else f"{MARK} {number}"
    text = json.dumps(whole)
    for number in range(len(put)):
        text = text.replace(f'"{MARK} {number}"', draw(values()))
    return text.encode()


def read_everywhere(number: str, sent: bytes) -> None:
    """Read an event as each later stage does; each raises for unreadable ones."""
    chunk_event = ChunkEvent(1, uuid.UUID(number).bytes, 1_760_000_000_000, "test/1", sent)
    _, found = Fingerprinter(ProjectRegistry()).group(chunk_event)
    assert explain(sent).fingerprint == f"{found.fingerprint:016x}"
    from_json(sent, "test/1", chunk_event.received_ms)
    assert not run_trial([], [PastEvent(sent, 1, 1, "test/1", chunk_event.received_ms)]).unreadable
    columns = EventColumns()
    columns.add_row(chunk_event, found.grouping, 30, 30)
    (row,) = columns.table().to_pylist()
    payload = unpacked(row["payload"])[chunk_event.id] if any(row["pack"]) else row["payload"]
    assert payload == sent
    assert readable(uuid.UUID(number).int, sent) is not None
    shown = decode_any(sent)
    assert read(shown, "test/1").id
    assert is_json(sent)
    (line,) = lines(Topic.EVENTS, record(encode_chunk([chunk_event])))
    json.dumps(line, allow_nan=False).encode()


@pytest.mark.parametrize("rules", [STRICT, LENIENT], ids=["strict", "lenient"])
@given(body=bodies())
def test_accepted_event_is_read_by_every_later_stage(rules: ValidationRules, body: bytes) -> None:
    try:
        number, sent = validate(body, rules)
    except InvalidEvents:
        return
    read_everywhere(number, bytes(sent))


@pytest.mark.parametrize("text", NUMBERS)
@pytest.mark.parametrize("field", ["unknown", "fingerprint", "data"])
@pytest.mark.holds("contract 2.6")
def test_every_number_of_json_is_accepted_where_its_value_is_free(text: str, field: str) -> None:
    crumb = {"timestamp": "2026-01-31T12:00:00Z", "type": "custom", "data": {"ratio": MARK}}
    fields: dict[str, Any] = {"unknown": MARK, "fingerprint": [MARK], "data": [crumb]}
    whole = event(**{"breadcrumbs" if field == "data" else field: fields[field]})
    number, sent = validate(json.dumps(whole).replace(f'"{MARK}"', text).encode(), STRICT)
    read_everywhere(number, bytes(sent))
