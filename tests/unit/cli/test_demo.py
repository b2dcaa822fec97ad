"""The demo's parts that need no server."""

import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from aiohttp import ClientResponseError, RequestInfo
from multidict import CIMultiDict, CIMultiDictProxy
from rich.console import Console
from yarl import URL

from cli.demo.demo_checks import StoredEvents
from cli.demo.demo_command import Demo, new_name
from cli.demo.sample_events import SPREAD, fresh, load_samples
from schemas.event import Event

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def samples() -> list[dict[str, Any]]:
    return load_samples()


def test_samples_are_hundreds_of_valid_events_with_different_ids(samples: list[dict[str, Any]]) -> None:
    renewed_events = fresh(samples, NOW, random.Random(1))
    assert len({event["id"] for event in renewed_events}) == len(renewed_events) >= 400
    for event in renewed_events:
        msgspec.json.decode(msgspec.json.encode(event), type=Event)


def test_each_demo_gets_a_project_of_another_name() -> None:
    assert new_name(["shop"]) == "demo"
    assert new_name(["demo", "shop", "demo-2"]) == "demo-3"


def test_fresh_events_are_of_the_last_days_and_so_are_their_breadcrumbs(
    samples: list[dict[str, Any]],
) -> None:
    for old, new in zip(samples, fresh(samples, NOW, random.Random(2)), strict=True):
        moment = datetime.fromisoformat(new["timestamp"])
        assert NOW - SPREAD <= moment <= NOW
        for was, crumb in zip(old.get("breadcrumbs") or [], new.get("breadcrumbs") or [], strict=True):
            before = datetime.fromisoformat(old["timestamp"]) - datetime.fromisoformat(was["timestamp"])
            after = moment - datetime.fromisoformat(crumb["timestamp"])
            assert abs(before - after) < timedelta(milliseconds=2)
        assert {k: v for k, v in new.items() if k not in {"id", "timestamp", "breadcrumbs"}} == {
            k: v for k, v in old.items() if k not in {"id", "timestamp", "breadcrumbs"}
        }


def test_nothing_differs_when_each_event_is_there_once() -> None:
    assert StoredEvents(2, 3, Counter(["a", "b", "c"])).differences({"a", "b", "c"}) == []


@pytest.mark.parametrize(
    ("seen", "sentence"),
    [
        (StoredEvents(1, 2, Counter(["a"])), "1 events are not stored"),
        (StoredEvents(1, 2, Counter(["a", "b", "b"])), "1 events are stored twice"),
        (StoredEvents(1, 2, Counter(["a", "b", "z"])), "1 stored events were never sent"),
        (StoredEvents(1, 3, Counter(["a", "b"])), "the issues count 3 events instead of 2"),
    ],
)
def test_each_difference_is_reported(seen: StoredEvents, sentence: str) -> None:
    assert seen.differences({"a", "b"}) == [sentence]


class Overloaded:
    """The read API, which answers with these statuses before it has the events."""

    def __init__(self, *statuses: int) -> None:
        self._statuses = list(statuses)

    async def all(self) -> StoredEvents:
        if self._statuses:
            request = RequestInfo(URL("http://a"), "GET", CIMultiDictProxy(CIMultiDict()))
            raise ClientResponseError(request, (), status=self._statuses.pop(0))
        return StoredEvents(1, 2, Counter(["a", "b"]))


async def demo_on(*statuses: int) -> StoredEvents:
    demo = Demo(None, None, Overloaded(*statuses), Console())  # type: ignore[arg-type]
    demo.sent = {"a", "b"}
    return (await demo.stored())[0]


async def test_the_demo_waits_until_the_read_api_is_no_longer_overloaded() -> None:
    assert (await demo_on(503, 503)).stored == 2


async def test_another_failure_of_the_read_api_ends_the_demo() -> None:
    with pytest.raises(ClientResponseError):
        await demo_on(500)
