"""The two halves of the protocol against each other: everything that the library can build, a live edge accepts."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

import svc
from schemas.event import Event
from svc.answers import Fate
from svc.batches import batches
from svc.client import SDK
from svc.deliver import deliver
from svc.limits import MAX_BODY_BYTES, MAX_EVENT_BYTES
from svc.upload import Uploader
from tests.contract.edge.live_edge import LiveEdge
from tests.unit.svc.example_event import captured


@pytest.fixture(autouse=True)
def _closed_library() -> Iterator[None]:
    yield
    svc.close(0)


def token(edge: LiveEdge) -> str:
    return edge.project.tokens[0].token


def start(edge: LiveEdge, **options: Any) -> None:
    svc.init(**{"token": token(edge), "release": "shop@1.4.2+318", "ingest_url": edge.url, **options})


async def flushed() -> bool:
    """`flush` blocks, and the edge runs in this thread's loop."""
    return await asyncio.to_thread(svc.flush, 20)


async def delivered(edge: LiveEdge, events: list[bytes]) -> list[dict[str, Any]]:
    """Deliver all; returns the rejected ones."""
    uploader = Uploader(edge.url, token(edge), SDK)
    rejected: list[dict[str, Any]] = []
    for batch in batches(events):
        delivery = await asyncio.to_thread(deliver, uploader, batch)
        assert delivery.fate is Fate.DONE, delivery
        rejected += delivery.answer.errors
    uploader.close()
    return rejected


async def test_event_of_the_documentation_is_accepted(edge: LiveEdge) -> None:
    assert await delivered(edge, [json.dumps(captured()).encode()]) == []


async def test_capture_arrives_with_its_scope(edge: LiveEdge) -> None:
    start(edge, identity=True)
    svc.set_user({"id": "7", "name": "Jo", "anonymous": False, "linkBy": {"email": " JO@example.com"}})
    svc.set_tag("plan", "pro")
    svc.add_breadcrumb({"type": "user", "message": "click", "data": {"target": "pay"}})
    svc.track("checkout")
    event_id = svc.capture_exception(ValueError("m"))
    assert await flushed()
    (stored,) = edge.stored()
    assert stored.sdk == SDK
    (event,) = [msgspec.json.decode(raw, type=Event) for raw in edge.stored_bytes()]
    assert event.id == event_id
    assert event.platform == "python"
    assert event.tags == {"plan": "pro", "handled": "yes"}
    assert event.user is not None
    assert (event.user.id, event.user.name, event.user.anonymous) == ("7", "Jo", False)
    assert set(event.user.linkHashes or {}) == {"email"}
    assert len(event.breadcrumbs or []) == 2
    assert event.error.stack[0].function == "test_capture_arrives_with_its_scope"


async def test_event_of_a_megabyte_and_full_batches_are_accepted(edge: LiveEdge) -> None:
    start(edge, source_context=False)
    for n in range(250):
        svc.capture_exception(ValueError(f"{n} " + "x" * 9_000))
    assert await flushed()
    assert svc.stats()["sent"] == 250
    event = captured()
    event["padding"] = ""
    event["padding"] = "x" * (MAX_EVENT_BYTES - len(json.dumps(event, separators=(",", ":"))))
    encoded = json.dumps(event, separators=(",", ":")).encode()
    assert len(b'{"events":[]}') + len(encoded) == MAX_BODY_BYTES
    assert await delivered(edge, [encoded]) == []


async def test_rejected_event_is_identified_by_its_index_in_the_batch(edge: LiveEdge) -> None:
    reported: list[dict[str, Any]] = []

    def break_the_second(event: dict[str, Any]) -> dict[str, Any]:
        return {**event, "kind": "message"} if event["error"]["message"] == "second" else event

    start(edge, before_send=break_the_second, on_rejected=reported.extend, flush_interval=60)
    ids = [svc.capture_exception(ValueError(message)) for message in ("first", "second", "third")]
    assert await flushed()
    (rejected,) = reported
    assert (rejected["id"], rejected["index"], rejected["error"]) == (ids[1], 1, "validationFailed")
    assert [detail["field"] for detail in rejected["details"]] == ["kind"]
    assert (svc.stats()["sent"], svc.stats()["rejected"]) == (2, 1)
