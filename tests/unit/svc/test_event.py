"""Every event that the library can build decodes as the server's own struct, for any input."""

import copy
import json
import uuid
from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.validation.validate import STRICT, checked_text, validate
from schemas.event import Event
from schemas.limits import MAX_BODY_BYTES, Limit
from svc import limits
from svc.event import fit_event
from svc.timestamps import Ids, iso
from tests.unit.svc.fuzzed import Situation, client, situations


def test_limits_are_the_servers() -> None:
    assert {limit: limit.maximum for limit in Limit} == {
        Limit.EVENTS_PER_BATCH: limits.BATCH_EVENTS,
        Limit.BREADCRUMBS: limits.BREADCRUMBS,
        Limit.FRAMES: limits.FRAMES,
        Limit.CAUSE_DEPTH: limits.CAUSES,
        Limit.TAG_KEYS: limits.TAG_KEYS,
        Limit.TAG_KEY_LENGTH: limits.TAG_KEY_CHARS,
        Limit.TAG_VALUE_LENGTH: limits.TAG_VALUE_CHARS,
        Limit.CONTEXT_LINES: limits.CONTEXT_LINES,
    }
    assert limits.MAX_BODY_BYTES == MAX_BODY_BYTES


def test_event_says_where_it_is_from() -> None:
    reporter, transport = client(environment="staging")
    reporter.capture(ValueError("m"))
    event = json.loads(transport.events[0])
    assert event["platform"] == "python"
    assert event["kind"] == "error"
    assert event["release"] == "shop@1.4.2+318"
    assert event["environment"] == "staging"
    assert (event["app"]["version"], event["app"]["build"]) == ("1.4.2", "318")
    assert event["device"]["os"] == "other"
    assert event["device"]["osVersion"]
    assert set(event) == {
        "id", "timestamp", "kind", "platform", "release", "environment", "device", "app", "error", "tags",
    }  # fmt: skip


@given(situations)
def test_the_server_accepts_the_event_of_any_situation_unchanged(situation: Situation) -> None:
    event_id, encoded = situation.event()
    event = msgspec.json.decode(encoded, type=Event)
    assert event.id == event_id
    assert uuid.UUID(event.id).version == 7
    assert len(encoded) <= limits.MAX_EVENT_BYTES
    assert validate(checked_text(encoded), STRICT) == (event_id, encoded)


def large_event() -> dict[str, Any]:
    frame = {
        "function": "f", "file": "f.py", "line": 1, "inApp": False,
        "preContext": ["x" * 200] * 5, "contextLine": "x" * 200, "postContext": ["x" * 200] * 5,
    }  # fmt: skip
    error: dict[str, Any] = {}
    for n in range(11):
        stack = [dict(frame, inApp=n == 0) for _ in range(100)]
        error = {"type": "E", "message": "m" * 16_000, "stack": stack} | ({"cause": error} if error else {})
    crumb = {"timestamp": iso(0), "type": "custom", "data": {"d": "y" * 8_000}}
    reporter, transport = client()
    reporter.capture(ValueError("m"))
    event: dict[str, Any] = json.loads(transport.events[0])
    return event | {"error": error, "breadcrumbs": [dict(crumb) for _ in range(100)]}


def test_context_of_libraries_goes_first_and_the_oldest_breadcrumbs_before_the_rest() -> None:
    event = large_event()
    slim = json.loads(fit_event(copy.deepcopy(event), 1_600_000) or b"")
    assert len(slim["breadcrumbs"]) == 100
    innermost = slim["error"]
    while "cause" in innermost:
        assert not {"preContext", "contextLine"} & innermost["stack"][0].keys()
        innermost = innermost["cause"]
    assert innermost["stack"][0]["preContext"]
    slimmer = json.loads(fit_event(copy.deepcopy(event), 600_000) or b"")
    assert len(slimmer["breadcrumbs"]) == 20
    assert len(slimmer["error"]["message"]) == 16_000


def test_event_that_is_too_large_after_reduction_is_counted() -> None:
    reporter, transport = client(before_send=lambda event: {**event, "environment": "x" * 2_000_000})
    with pytest.raises(AssertionError):
        reporter.capture(ValueError())
    assert reporter.counts["dropped.tooLarge"] == 1
    assert transport.events == []


@given(st.lists(st.integers(0, 2_000_000_000_000_000_000), min_size=2, max_size=50))
def test_ids_never_go_back_even_if_the_clock_does(clock: list[int]) -> None:
    ids = Ids()
    made = [ids.new(ns) for ns in clock]
    assert made == sorted(set(made))
    assert [uuid.UUID(text).version for text in made] == [7] * len(made)


def test_id_carries_the_time_of_the_event() -> None:
    ns = 1_790_000_000_123_456_789
    assert uuid.UUID(Ids().new(ns)).int >> 80 == ns // 1_000_000


def test_capturing_while_capturing_is_left_out() -> None:
    reporter, transport = client()

    class Chatty(Exception):
        def __str__(self) -> str:
            reporter.capture(self)
            return "said"

    reporter.capture(Chatty())
    assert [json.loads(event)["error"]["message"] for event in transport.events] == ["said"]
    assert reporter.counts == Counter(captured=1)
