"""Changes of an event that don't change its fingerprint, and that no input breaks it."""

import json
import random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grouping.fingerprint import GroupingEvent, culprit, fingerprint
from grouping.fingerprint.built_files import is_minified
from grouping.fingerprint.event_view import GroupingError, GroupingFrame
from tests.unit.grouping.fingerprint.events import SAMPLES, decode, grouped, samples

sent_events = st.sampled_from(samples()).map(json.loads)
seeds = st.randoms(use_true_random=False)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def errors_of(sent: dict[str, Any]) -> list[dict[str, Any]]:
    """The error and its causes."""
    chain = [sent["error"]]
    while chain[-1].get("cause"):
        chain.append(chain[-1]["cause"])
    return chain


def built(frame: dict[str, Any]) -> bool:
    """Whether the frame is one of a build."""
    return is_minified(msgspec.convert(frame, GroupingFrame))


@given(sent_events, seeds)
def test_lines_and_columns_of_source_text_do_not_matter(sent: dict[str, Any], seed: random.Random) -> None:
    before = grouped(sent)
    for error in errors_of(sent):
        for frame in error["stack"]:
            if not built(frame):
                frame["line"] = seed.randint(0, 5000)
                frame["column"] = seed.choice([None, seed.randint(1, 250)])
    assert grouped(sent) == before


@given(
    sent_events,
    st.fixed_dictionaries(
        {},
        optional={
            "id": st.uuids().map(str),
            "release": st.text(max_size=30),
            "timestamp": st.datetimes().map(str),
            "environment": st.text(max_size=10),
            "user": json_values,
            "tags": st.dictionaries(st.text(max_size=9), st.text(max_size=9), max_size=4),
            "breadcrumbs": st.lists(json_values, max_size=3),
            "device": json_values,
            "traceId": st.none() | st.text(max_size=8),
            "unheardOf": json_values,
        },
    ),
)
def test_the_surroundings_of_the_error_do_not_matter(sent: dict[str, Any], other: dict[str, Any]) -> None:
    assert grouped(sent | other) == grouped(sent)


@given(sent_events, seeds)
def test_order_of_keys_does_not_matter(sent: dict[str, Any], seed: random.Random) -> None:
    assert grouped(shuffled(sent, seed)) == grouped(sent)


def shuffled(value: Any, seed: random.Random) -> Any:
    """The same value with the keys of its objects in another order."""
    if isinstance(value, dict):
        items = [(key, shuffled(inner, seed)) for key, inner in value.items()]
        seed.shuffle(items)
        return dict(items)
    return [shuffled(inner, seed) for inner in value] if isinstance(value, list) else value


@given(sent_events, st.booleans())
def test_null_is_as_if_it_were_left_out(sent: dict[str, Any], present: bool) -> None:
    before = grouped(sent)
    for holder, keys in [(sent, ("fingerprint", "app", "traceId"))] + [
        (frame, ("function", "column", "absolutePath", "preContext"))
        for error in errors_of(sent)
        for frame in error["stack"]
    ]:
        for key in keys:
            if holder.get(key) is None:
                holder.pop(key, None)
                if present:
                    holder[key] = None
    assert grouped(sent) == before


@given(sent_events)
def test_context_lines_and_absolute_paths_do_not_matter(sent: dict[str, Any]) -> None:
    before = grouped(sent)
    for error in errors_of(sent):
        for frame in error["stack"]:
            frame |= {"preContext": ["a"], "postContext": ["b"], "absolutePath": "/build/x"}
    assert grouped(sent) == before


@given(sent_events)
def test_frames_below_the_deciding_ones_do_not_matter(sent: dict[str, Any]) -> None:
    before = grouped(sent)
    if before.rule == "stack":
        for error in errors_of(sent):
            if any(frame["inApp"] for frame in error["stack"]):
                error["stack"] += [{"function": "later", "file": "later.js", "line": 1, "inApp": False}] * 3
        assert grouped(sent) == before


@given(st.lists(sent_events, min_size=2, max_size=5), seeds)
def test_the_events_before_do_not_matter(batch: list[dict[str, Any]], seed: random.Random) -> None:
    before = [grouped(sent) for sent in batch]
    order = list(range(len(batch)))
    seed.shuffle(order)
    assert {index: grouped(batch[index]) for index in order} == dict(enumerate(before))


hostile = st.text(st.characters(codec=None), max_size=200) | st.sampled_from(
    [
        "(" * 400,
        "<" * 400,
        "a." * 200,
        "-a" * 300,
        "$1" * 200,
        "_block_invoke" * 40,
        "\x00",
        "\ud83d",
        "[as x]",
        "/<",
        "{{",
        "::",
    ]
)
hostile_frames = st.builds(
    GroupingFrame,
    function=st.none() | hostile,
    file=st.none() | hostile,
    line=st.none() | st.integers(),
    column=st.none() | st.integers(),
    in_app=st.none() | st.booleans(),
)
hostile_errors = st.recursive(
    st.builds(
        GroupingError,
        type=st.none() | hostile,
        message=st.none() | hostile,
        stack=st.none() | st.lists(hostile_frames, max_size=6),
    ),
    lambda cause: st.builds(
        GroupingError,
        type=hostile,
        message=st.none() | hostile,
        stack=st.none() | st.lists(hostile_frames, max_size=3),
        cause=cause,
    ),
    max_leaves=6,
)


@given(
    st.builds(
        GroupingEvent,
        error=hostile_errors,
        platform=st.none() | st.sampled_from(["javascript", "ios", "android", "python", "other"]),
        fingerprint=st.none() | st.lists(json_values, max_size=4),
    )
)
def test_nothing_that_decodes_breaks_it(event: GroupingEvent) -> None:
    found = fingerprint(event)
    assert found == fingerprint(event)
    assert found.parts
    assert isinstance(culprit(event), str)


@pytest.mark.parametrize(
    "raw",
    [
        b'{"error":{"type":"A","message":"b","stack":[]}}',
        b'{"error":{"type":"A","message":"b","stack":null,"cause":null},"fingerprint":null,"app":null}',
        b'{"error":{"type":"A","message":"b","stack":[{"file":"f","line":0,"inApp":true,"column":0}]},'
        b'"fingerprint":[1,null,{}]}',
        b'{"error":{"type":"A","message":"b","stack":[{}]},"app":{"framework":null},"platform":"later"}',
    ],
)
def test_events_of_lenient_projects_decode(raw: bytes) -> None:
    assert fingerprint(decode(raw)).parts


def test_the_shipped_samples_are_events_of_the_protocol() -> None:
    from schemas.event import Event

    for path in sorted(SAMPLES.glob("*.events.jsonl*")):
        assert path.stat().st_size < 300_000
    for line in samples():
        msgspec.json.decode(line, type=Event)
