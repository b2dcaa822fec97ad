from typing import Any

import msgspec
import pytest

from query.event_view import EventView, from_json
from schemas.errors import Unreadable

RECEIVED_MS = 1_769_817_600_000
EVENT: dict[str, Any] = {
    "id": "0199ee65-f275-750f-87fc-3665cc81dda7",
    "timestamp": "2026-01-30T23:59:00.250Z",
    "kind": "error",
    "platform": "javascript",
    "release": "shop@1.2.0+7",
    "environment": "prod",
    "device": {"os": "web", "osVersion": "17.1", "locale": "de-DE"},
    "app": {"version": "1.2.0"},
    "user": {"id": "u-1"},
    "tags": {"feature": "checkout"},
    "error": {
        "type": "TypeError",
        "message": "boom",
        "stack": [{"function": "a", "file": "a.ts", "line": 1, "inApp": True}],
        "cause": {
            "type": "RangeError",
            "message": "deep",
            "stack": [
                {"function": "a", "file": "b.ts", "line": 1, "inApp": True},
                {"file": "a.ts", "line": 2, "inApp": False},
            ],
        },
    },
}
VIEW = EventView(
    type="TypeError",
    message="boom",
    tags={"feature": "checkout"},
    environment="prod",
    release="shop@1.2.0+7",
    platform="javascript",
    os="web",
    os_version="17.1",
    model="",
    locale="de-DE",
    sdk="browser/1",
    user="u-1",
    files=("a.ts", "b.ts"),
    functions=("a",),
    timestamp=RECEIVED_MS - 60_000 + 250,
)


def test_a_view_shows_the_event_with_the_frames_of_its_causes() -> None:
    assert from_json(msgspec.json.encode(EVENT), "browser/1", RECEIVED_MS) == VIEW


@pytest.mark.holds("contract 4")
def test_a_time_that_no_clock_can_mean_gives_way_to_that_of_receipt() -> None:
    view = from_json(
        msgspec.json.encode(EVENT | {"timestamp": "1999-01-01T00:00:00Z"}), "browser/1", RECEIVED_MS
    )
    assert view.timestamp == RECEIVED_MS


def test_non_events_are_refused() -> None:
    with pytest.raises(Unreadable):
        from_json(b"[]", "browser/1", RECEIVED_MS)
