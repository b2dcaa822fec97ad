"""The fast path of batches gives the same result as its events one by one, or none."""

import asyncio
import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.limits.scheduler import FairScheduler, TimeSlice
from edge.validation.fast_path import slice_events
from edge.validation.validate import (
    LENIENT,
    STRICT,
    InvalidEvents,
    ValidationRules,
    open_batch,
    validate_batch,
    validate_each,
)
from schemas.event import UUID7_PATTERN, UUID_PATTERN
from schemas.ids import uuid7
from tests.edge_events import encoded, event
from tests.unit.edge.delivery.retained import kept_bytes
from tests.unit.edge.validation.test_validate import EVENTS, RULES, mutations

Verdict = tuple[list[tuple[str, bytes]], Any]


def wrapped(*events: bytes) -> bytes:
    return b'{"events":[' + b",".join(events) + b"]}"


def unescaped(**fields: Any) -> bytes:
    return json.dumps(event(**fields), ensure_ascii=False).encode()


def time_slice() -> TimeSlice:
    return FairScheduler().time_slice("t")


async def _verdicts(body: bytes, rules: ValidationRules) -> list[Verdict]:
    found: list[Verdict] = []
    for way in (validate_batch, validate_each):
        try:
            admitted, rejected = await way(body, rules, time_slice())
        except InvalidEvents as refused:
            found.append(([], refused.details))
        else:
            found.append(([(event_id, bytes(text)) for event_id, text in admitted], rejected))
    return found


def verdict(body: bytes, rules: ValidationRules = STRICT) -> Verdict:
    """The result of a batch, the same whether its events are validated together or one by one."""
    together, each = asyncio.run(_verdicts(body, rules))
    assert together == each
    return together


def goes_fast(body: bytes) -> bool:
    """Whether the fast path takes all of it."""
    pieces = slice_events(body)
    return pieces is not None and STRICT.fast.valid_events(pieces) is not None


def test_samples_in_batches_take_the_fast_path_and_are_cut_where_a_parser_cuts() -> None:
    for first in range(0, len(EVENTS), 50):
        body = wrapped(*EVENTS[first : first + 50])
        pieces = slice_events(body)
        assert pieces is not None
        assert [bytes(piece) for piece in pieces] == [bytes(raw) for raw in open_batch(body)]
        ids = [json.loads(line)["id"] for line in EVENTS[first : first + 50]]
        for rules in (STRICT, LENIENT):
            valid = rules.fast.valid_events(pieces)
            assert valid == list(zip(ids, pieces, strict=True))
        assert verdict(body)[1] == []


def test_batch_of_one_and_of_the_most_events_take_the_fast_path() -> None:
    assert goes_fast(wrapped(encoded()))
    assert goes_fast(wrapped(*[encoded() for _ in range(100)]))
    assert slice_events(wrapped(*[encoded() for _ in range(101)])) is None


INNER = json.loads(encoded())
ID = str(uuid7())
SLOW = {
    "empty": b'{"events":[]}',
    "empty event": b'{"events":[{}]}',
    "half an event": b'{"events":[{]}',
    "space before": b'{"events":[ ' + encoded() + b"]}",
    "space behind": b'{"events":[' + encoded() + b" ]}",
    "space between": wrapped(encoded(), b" " + encoded()),
    "space in front of each": wrapped(b" " + encoded(), b" " + encoded()),
    "line break at the end": wrapped(encoded()) + b"\n",
    "another field": b'{"events":[' + encoded() + b'],"sent":[{"id":"019"}]}',
    "events twice": b'{"events":[' + encoded() + b'],"events":[' + encoded() + b"]}",
    "begins with another field": wrapped(encoded(), json.dumps({"x": 1} | INNER).encode()),
    "no event between": wrapped(encoded(), b"1", encoded()),
    "comma at the end": b'{"events":[' + encoded() + b",]}",
    "border in an unknown field": wrapped(
        json.dumps(INNER | {"x": [{"a": 1}, {"id": ID}]}, separators=(",", ":")).encode(), encoded()
    ),
    "border in a breadcrumb": wrapped(
        json.dumps(
            INNER
            | {
                "breadcrumbs": [
                    {
                        "timestamp": INNER["timestamp"],
                        "type": "custom",
                        "data": {"x": [{}, {"id": ID}, {"id": ID}]},
                    }
                ]
            },
            separators=(",", ":"),
        ).encode(),
        encoded(),
    ),
    "id of version 4": wrapped(encoded(id="00000000-0000-4000-8000-000000000000")),
    "release without a build": wrapped(encoded(), encoded(release="shop@1.2.3")),
    "offset": wrapped(encoded(timestamp="2026-01-31T12:00:00+01:00")),
    "blank for T": wrapped(encoded(timestamp="2026-01-31 12:00:00.000Z"), encoded()),
    "blank for T in a breadcrumb": wrapped(
        encoded(breadcrumbs=[{"timestamp": "2026-01-31 12:00:00.000Z", "type": "custom", "data": {}}])
    ),
    "offset of a breadcrumb": wrapped(
        encoded(breadcrumbs=[{"timestamp": "2026-01-31T12:00:00+01:00", "type": "custom", "data": {}}])
    ),
    "no UTF-8 in an unknown field": wrapped(encoded(x="CUT").replace(b"CUT", b"\xff"), encoded()),
    "no UTF-8 among other letters": wrapped(
        unescaped(environment="é"), encoded(x="CUT").replace(b"CUT", b"\xc3")
    ),
    "half a surrogate": wrapped(encoded(environment="CUT").replace(b"CUT", rb"\ud83d"), encoded()),
    "not JSON": wrapped(encoded(), encoded()[:-1] + b",}"),
    "no number": wrapped(encoded(), encoded(x="CUT").replace(b'"CUT"', b"NaN")),
}


@pytest.mark.parametrize("body", SLOW.values(), ids=SLOW.keys())
def test_doubtful_events_are_not_taken_by_the_fast_path(body: bytes) -> None:
    assert not goes_fast(body)
    assert verdict(body)


def test_ids_in_upper_case_are_lowered_by_the_fast_path() -> None:
    plain, upper = encoded(), encoded(id=ID.upper())
    body = wrapped(plain, upper)
    assert goes_fast(body)
    for rules in (STRICT, LENIENT):
        valid, rejected = verdict(body, rules)
        assert valid[1] == (ID, upper.replace(ID.upper().encode(), ID.encode()))
        assert valid[0][1] == plain
        assert rejected == []


FIELD = {
    "id of version 4": encoded(id="00000000-0000-4000-8000-000000000000"),
    "kind": encoded(kind="anr"),
    "release": encoded(release="1.2.3"),
    "place of a frame": encoded().replace(b'"line": 10', b'"line": 0'),
}


@pytest.mark.parametrize("sent", FIELD.values(), ids=FIELD.keys())
def test_events_that_only_a_lenient_project_takes_have_a_fast_path_there(sent: bytes) -> None:
    assert STRICT.fast.valid_events([sent]) is None
    assert LENIENT.fast.valid_events([sent]) == [(json.loads(sent)["id"], sent)]
    assert verdict(wrapped(encoded(), sent), STRICT)[1][0].index == 1
    assert verdict(wrapped(encoded(), sent), LENIENT)[1] == []


def test_offset_of_zero_and_other_writings_are_sound() -> None:
    compact = [
        encoded(timestamp="2026-01-31T12:00:00+00:00"),
        unescaped(environment="עברית \U0001f600"),
        encoded(environment="CUT").replace(b"CUT", rb"\u00e9\ud83d\ude00"),
        encoded(release="shop@1.2.3+\u00e9"),
        encoded(release="@scope/app@1.0.0+7"),
        encoded(release="My App@1.0+3@4+5"),
        encoded(breadcrumbs=None, tags=None, unknown=[{"id": [{}, {}]}]),
    ]
    body = wrapped(*compact)
    assert goes_fast(body)
    admitted, rejected = verdict(body)
    assert [text for _, text in admitted] == compact
    assert rejected == []


def test_long_releases_are_not_kept() -> None:
    def body(number: int) -> bytes:
        return wrapped(unescaped(release=f"a@1+{number}" + "x" * 50_000 + "\N{GRINNING FACE}"))

    assert goes_fast(body(0))
    assert kept_bytes(lambda number: goes_fast(body(number))) < 1 << 20


@given(st.lists(mutations() | st.sampled_from(EVENTS), min_size=1, max_size=4), st.sampled_from(RULES))
def test_events_together_and_one_by_one_have_one_verdict(events: list[bytes], rules: ValidationRules) -> None:
    verdict(wrapped(*events), rules)


BODY = wrapped(encoded(), unescaped(environment="é"), encoded())


@given(
    st.integers(0, len(BODY) - 1),
    st.integers(0, 3),
    st.binary(max_size=2) | st.sampled_from([b"},{", b'},{"id":"019', b"]}", b"[", b"{", b" ", b",", b'"']),
)
def test_damaged_bodies_have_one_verdict_too(offset: int, lost: int, put: bytes) -> None:
    verdict(BODY[:offset] + put + BODY[offset + lost :])


@given(st.lists(st.from_regex(UUID7_PATTERN, fullmatch=True), min_size=1, max_size=5))
def test_ids_are_recognised_as_the_pattern_does(ids: list[str]) -> None:
    assert STRICT.fast.are_ids(ids)
    assert LENIENT.fast.are_ids(ids)


@given(st.integers(0, 35), st.sampled_from("0789abcdfgABG- \n\u00e9\u0660\ud800"), st.integers(0, 2))
def test_one_wrong_character_in_one_of_many_ids_is_seen(offset: int, letter: str, which: int) -> None:
    ids = [str(uuid7()) for _ in range(3)]
    ids[which] = ids[which][:offset] + letter + ids[which][offset + 1 :]
    for rules, pattern in ((STRICT, UUID7_PATTERN), (LENIENT, UUID_PATTERN)):
        assert rules.fast.are_ids(ids) == bool(re.fullmatch(pattern[1:-1], ids[which]))
