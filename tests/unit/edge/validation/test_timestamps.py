"""Times: a batch of them gets the same verdicts as each alone, and all decoders accept those that pass."""

import json
from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.validation.timestamps import are_canonical, are_utc, is_utc
from edge.validation.validate import STRICT, validate
from tests.edge_events import event
from tests.unit.edge.validation.test_validate import TIME, near_times

MOMENTS = st.datetimes(datetime(1000, 1, 1), datetime(9999, 12, 31)).map(  # noqa: DTZ001
    lambda moment: moment.isoformat(timespec="milliseconds") + "Z"
)


@pytest.mark.parametrize(
    "time",
    [
        "2026-01-31T12:00:00Z",
        "2026-01-31T12:00:00+00:00",
        "2026-01-31T12:00:00.5Z",
        "2026-01-31T12:00:00.123456+00:00",
        "2026-01-31T12:00:00.123456789Z",
        "2028-02-29T00:00:00.000Z",
        "0001-01-01T00:00:00.000Z",
    ],
)
def test_other_precisions_and_an_offset_of_zero_are_taken(time: str) -> None:
    crumb = {"timestamp": time, "type": "custom", "data": {}}
    body = json.dumps(event(timestamp=time, breadcrumbs=[crumb])).encode()
    assert bytes(validate(body, STRICT)[1]) == body


@given(st.lists(MOMENTS, min_size=1))
def test_moments_with_milliseconds_are_seen_at_one_look(texts: list[str]) -> None:
    assert are_canonical(texts) is not any("-02-29T" in text for text in texts)
    assert all(map(is_utc, texts))


@given(st.lists(near_times() | MOMENTS | st.text(max_size=30), max_size=4))
def test_many_are_checked_as_each_alone(texts: list[str]) -> None:
    assert are_utc(texts) == all(map(is_utc, texts))
    if are_canonical(texts):
        assert all(map(is_utc, texts))


@pytest.mark.parametrize(
    "texts", [[TIME + "\n" + TIME, ""], [TIME + TIME], [TIME[:12], TIME[12:]], ["", TIME]]
)
def test_texts_that_only_together_look_like_times_are_none(texts: list[str]) -> None:
    assert not are_utc(texts)


@given(near_times())
def test_accepted_times_are_those_that_decoders_read(text: str) -> None:
    if is_utc(text):
        moment = msgspec.convert(text, datetime)
        assert moment.tzinfo is UTC
        assert moment.isoformat()[:19] == text[:19]
