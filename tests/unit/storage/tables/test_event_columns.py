import uuid

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.chunks import ChunkEvent, Grouping
from schemas.errors import Unreadable
from schemas.ids import user_hash, uuid7
from schemas.times import DAY_MS, event_time, from_ms, iso
from storage.tables.event_columns import COLUMNS, EventColumns, event_times, uint128
from storage.tables.packs import unpacked
from tests.unit.query.test_event_fields import EVENT

GROUPING = Grouping(2**64 - 1, "v1", "frames", ("E", "a.js"))
NOW = 1_760_000_000_000


def chunk_event(**changes: object) -> ChunkEvent:
    payload = msgspec.json.encode(EVENT | changes)
    return ChunkEvent(7, uuid7(NOW).bytes, NOW, "js/1.0", payload)


def rows(*events: ChunkEvent) -> list[dict[str, object]]:
    columns = EventColumns()
    for event in events:
        columns.add_row(event, GROUPING, 90, 30)
    table = columns.table()
    assert tuple(table.column_names) == COLUMNS
    found: list[dict[str, object]] = table.to_pylist()
    return found


def test_a_row_has_the_events_values() -> None:
    event = chunk_event(
        timestamp=iso(NOW - 1500),
        user={"id": "u1"},
        tags={"a": "1"},
        device={"os": "ios", "osVersion": "18", "locale": "de"},
    )
    (row,) = rows(event)
    assert row["project_id"] == 7
    assert row["fingerprint"] == 2**64 - 1
    assert row["ts"] == from_ms(NOW - 1500).replace(tzinfo=None)
    assert row["received"] == from_ms(NOW).replace(tzinfo=None)
    assert row["id"] == event.id[::-1]
    assert (row["os"], row["os_version"], row["model"], row["locale"]) == ("ios", "18", "", "de")
    assert (row["user_id"], row["user_hash"]) == ("u1", user_hash(7, "u1"))
    assert row["tags"] == [("a", "1")]
    assert row["files"] == ["a.js"]
    assert row["payload"] == event.payload
    assert (row["retention_days"], row["payload_days"]) == (90, 30)


def test_packed_rows_are_the_same_but_for_their_order_and_payloads() -> None:
    columns, weeks = EventColumns(), [NOW, NOW - 14 * DAY_MS]
    for number in range(120):
        event = chunk_event(timestamp=iso(weeks[number % 2]), tags={"n": str(number)})
        columns.add_row(
            ChunkEvent((7, 8)[number % 3 == 0], *(event.id, NOW, event.sdk, event.payload)),
            Grouping(number % 4, "v1", "frames", ()),
            90,
            (30, 60)[number % 5 == 0],
        )
    sent = {row["id"]: row for row in columns.table().to_pylist()}
    rows = columns.packed().to_pylist()
    packs = {row["pack"] for row in rows}
    content = {row["id"]: unpacked(row["payload"]) for row in rows if row["pack"] == row["id"]}
    assert len(packs) == len(content) == 2 * 2 * 2
    for row in rows:
        holder = sent[row["pack"]]
        own = sent[row["id"]]
        assert content[row["pack"]][row["id"][::-1]] == own["payload"]
        for name in ("project_id", "ts", "payload_days"):
            assert holder[name] == own[name]
        assert row | {"payload": own["payload"], "pack": own["pack"]} == own
    keys = [(row["payload_days"], row["ts"], row["project_id"], row["fingerprint"]) for row in rows]
    assert keys == sorted(keys)


def test_no_user_is_hash_0() -> None:
    found = rows(
        chunk_event(),
        chunk_event(user=None),
        chunk_event(user={"anonymous": True}),
        chunk_event(user={"id": ""}),
    )
    assert [(row["user_id"], row["user_hash"]) for row in found] == [("", 0)] * 4


def test_an_empty_block_is_an_empty_table() -> None:
    assert EventColumns().table().num_rows == 0


@pytest.mark.parametrize("payload", [b"nothing", b"[]"])
def test_a_bad_payload_leaves_the_block_as_it_was(payload: bytes) -> None:
    columns = EventColumns()
    columns.add_row(chunk_event(), GROUPING, 90, 90)
    with pytest.raises(Unreadable):
        columns.add_row(ChunkEvent(7, uuid7().bytes, NOW, "js", payload), GROUPING, 90, 90)
    assert len(columns) == columns.table().num_rows == 1


@given(
    st.lists(st.tuples(st.integers(-(2**40), 2**41), st.integers(0, 2**41), st.integers(0, 999)), min_size=1)
)
def test_event_times_of_a_column_are_those_of_each_event(pairs: list[tuple[int, int, int]]) -> None:
    sent = np.array([ms / 1000 + micros / 1e6 for ms, _, micros in pairs])
    received = np.array([ms for _, ms, _ in pairs], "i8")
    assert event_times(sent, received).tolist() == [event_time(ms, at) for ms, at, _ in pairs]


def test_each_row_of_a_block_keeps_its_own_values() -> None:
    """Equal values are kept once and stacks are shared, so rows must not change places."""
    sent = []
    for number in range(40):
        device = {
            "os": ("ios", "android")[number % 2],
            "osVersion": str(number % 3),
            "model": "münze" * (number % 4),
        }
        names = [f"f{n}{'ß' * (number % 5)}" for n in range(number % 7)]
        frames = [{"file": name, "function": name[::-1], "line": 1, "inApp": True} for name in names]
        error = {"type": f"E{number % 6}", "message": f"m{'é' * (number % 2)}{number}", "stack": frames}
        tags = {f"k{n}": f"v{number}" for n in range(number % 4)}
        sent.append(
            chunk_event(
                device=device, error=error, tags=tags, release=f"r{number % 5}", environment=f"e{number % 3}"
            )
        )
    found = rows(*sent)
    for number, row in enumerate(found):
        assert (row["os"], row["os_version"]) == (("ios", "android")[number % 2], str(number % 3))
        assert row["model"] == "münze" * (number % 4)
        assert row["files"] == [f"f{n}{'ß' * (number % 5)}" for n in range(number % 7)]
        assert row["functions"] == [name[::-1] for name in row["files"]]
        assert (row["error_type"], row["message"]) == (f"E{number % 6}", f"m{'é' * (number % 2)}{number}")
        assert row["tags"] == [(f"k{n}", f"v{number}") for n in range(number % 4)]
        assert (row["release"], row["environment"]) == (f"r{number % 5}", f"e{number % 3}")
        assert row["payload"] == sent[number].payload


@given(st.lists(st.uuids()))
def test_ids_sort_by_their_big_endian_value(ids: list[uuid.UUID]) -> None:
    found = [int.from_bytes(raw, "little") for raw in uint128([one.bytes for one in ids]).to_pylist()]
    assert found == [one.int for one in ids]
