"""Large bodies leave the loop to others, and make no more values than are looked at."""

import asyncio
import json
import tracemalloc
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.limits.scheduler import FairScheduler, TimeSlice
from edge.validation import validate as admission
from edge.validation.fast_path import MALFORMED
from edge.validation.outline import outline
from edge.validation.validate import (
    LENIENT,
    STRICT,
    InvalidEvents,
    ValidationRules,
    validate,
    validate_batch,
    validate_single,
)
from tests.edge_events import encoded, event
from tests.long_forms import first_quick
from tests.unit.edge.validation.test_validate import EVENTS, RULES, mutations

MEGABYTE = 1_048_576
BAD = encoded(kind="x")
GOOD = encoded()
UNITS = [b"[],", b"{},", b"1,", b"1.5,", b'{"a":1},', b"[" * 500 + b"]" * 500 + b","]


def filled(start: bytes, unit: bytes, end: bytes) -> bytes:
    """As many as fit into a megabyte."""
    return start + unit * ((MEGABYTE - len(start) - len(end)) // len(unit)) + unit.rstrip(b",") + end


def peak_bytes(body: bytes) -> int:
    """The most memory that deciding about an event takes."""
    tracemalloc.start()
    try:
        verdict(body, STRICT)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def verdict(body: bytes, rules: ValidationRules) -> Any:
    try:
        event_id, text = validate(body, rules)
    except InvalidEvents as refused:
        return [(detail.field, detail.message) for detail in refused.details]
    return event_id, bytes(text)


@pytest.mark.parametrize("unit", first_quick(UNITS))
@pytest.mark.parametrize(
    ("start", "end"),
    [
        (BAD[:-1] + b',"extra":[', b"]}"),
        (GOOD[:-1] + b',"extra":[', b"]}"),
        (GOOD.replace(b'"line": 10', b'"line": 10.0')[:-1] + b',"extra":[', b"]}"),
        (GOOD[:-1] + b',"x":"\\ud83d","extra":[', b"]}"),
        (GOOD.replace(b'["pay", 1]', b"null")[:-1] + b',"fingerprint":[', b"]}"),
        (BAD[:-1] + b',"breadcrumbs":[', b"]}"),
        (BAD[:-1] + b',"device":{"os":"web","osVersion":[', b"]}}"),
        (b'{"error":{"stack":[{"file":"a","x":[', b"]}]}}"),
        (b"[", b"]"),
    ],
    ids=[
        "unknown",
        "admitted",
        "fraction",
        "surrogate",
        "fingerprint",
        "breadcrumbs",
        "text",
        "frame",
        "list",
    ],
)
def test_unused_values_are_not_made(start: bytes, unit: bytes, end: bytes) -> None:
    """Making them would hold up every other thread; only a copy or two of the text is left."""
    assert peak_bytes(filled(start, unit, end)) < 5 * MEGABYTE


@pytest.mark.parametrize("unit", [b"[],", b"1,", b'"a",', b"{},"])
def test_items_of_a_batch_past_the_limit_are_not_made(unit: bytes) -> None:
    body = filled(b'{"events":[', unit, b"]}")
    tracemalloc.start()
    try:
        with pytest.raises(InvalidEvents) as caught:
            admission.open_batch(body)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert [detail.message for detail in caught.value.details] == ["at most 100 events per batch"]
    assert peak < 3 * MEGABYTE


def test_crowded_event_is_repaired_and_otherwise_forwarded_as_it_came() -> None:
    body = filled(
        GOOD.replace(b'"line": 10', b'"line": 10.0')[:-1] + b',"x":"\\ud83d","y":[1.50, ', b"[],", b"]}"
    )
    repaired = body.replace(b"10.0", b"10").replace(b"\\ud83d", b"\\ufffd")
    assert verdict(body, STRICT) == (json.loads(GOOD)["id"], repaired)


@pytest.mark.parametrize(
    "body", [b"{]", b'{"a":1}x', b'{"a":NaN}', b'{"a":"', b"", b"[1,]", b'{"a":' + b"[" * 400]
)
def test_outline_of_invalid_json_is_refused(body: bytes) -> None:
    with pytest.raises(MALFORMED):
        outline(body)


@given(mutations() | st.sampled_from(EVENTS), st.sampled_from(RULES))
def test_the_outline_gives_the_verdict_of_the_whole(body: bytes, rules: ValidationRules) -> None:
    assert rules.violations(outline(body)) == rules.violations(json.loads(body))


@given(mutations() | st.sampled_from(EVENTS), st.sampled_from(RULES))
def test_crowded_and_other_events_get_the_same_verdict(body: bytes, rules: ValidationRules) -> None:
    extra = b',"extra":[' + b"[]," * 25_000 + b"[]]}"
    crowded, plain = body[:-1] + extra, verdict(body, rules)
    wanted = plain if isinstance(plain, list) else (plain[0], plain[1][:-1] + extra)
    found = verdict(crowded, rules)
    if isinstance(wanted, tuple) and isinstance(found, tuple):
        assert (found[0], msgspec.json.decode(found[1])) == (wanted[0], msgspec.json.decode(wanted[1]))
    else:
        assert found == wanted


@pytest.mark.parametrize("depth", [10, 11, 12, 30, 200, 5000])
def test_causes_of_a_crowded_event_are_counted(depth: int) -> None:
    error: Any = "null"
    for _ in range(depth + 1):
        error = '{"type":"E","message":"","stack":[],"cause":' + error + "}"
    body = json.dumps(event(error="CUT")).replace('"CUT"', error).encode()
    crowded = filled(body[:-1] + b',"extra":[', b"[],", b"]}")
    fields = {10: [], 5000: ["body"]}.get(depth, ["error.cause"])
    for rules in (STRICT, LENIENT):
        found = verdict(crowded, rules)
        assert ([] if isinstance(found, tuple) else [field for field, _ in found]) == fields


def time_slice() -> TimeSlice:
    return FairScheduler().time_slice("t")


async def loop_iterations(work: Any) -> int:
    """How often others had their turn until the work was done."""
    done = asyncio.ensure_future(work)
    scheduler = 0
    while not done.done():
        await asyncio.sleep(0)
        scheduler += 1
    await done
    return scheduler


SURROGATES = encoded(environment="CUT").replace(b"CUT", rb"\ud83d" * 170_000)


@pytest.mark.parametrize(
    "work",
    [
        lambda: validate_single(SURROGATES, STRICT, time_slice()),
        lambda: validate_batch(b'{"events":[' + SURROGATES + b"]}", STRICT, time_slice()),
        lambda: validate_batch(b'{"events":[' + SURROGATES + b"]}", LENIENT, time_slice()),
    ],
)
async def test_large_slow_path_leaves_the_loop_to_others(work: Any) -> None:
    """On the loop itself it would be one or two turns; the work is a tenth of a second of Python."""
    assert await loop_iterations(work()) > 5
