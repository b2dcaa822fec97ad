"""The uploader and the whole library against a real server that answers well, badly, or not at all."""

import gzip
import http.client
import json
import select
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any, cast

import pytest

import svc
from local.ports import free_port
from svc.answers import Answer, Fate
from svc.batches import batches
from svc.deliver import deliver
from svc.limits import BATCH_FRAME_BYTES, MAX_BODY_BYTES
from svc.upload import Uploader
from tests.unit.svc.ingest import Ingest, Reply, accepted

EVENT = json.dumps({"id": "x"}).encode()


@pytest.fixture
def uploader(ingest: Ingest) -> Iterator[Uploader]:
    with closing(Uploader(ingest.url, "svc_pk_x", "svc-python/0", timeout=60)) as made:
        yield made


@pytest.mark.parametrize(
    ("reply", "status", "wait"),
    [
        (Reply(202, accepted(1)), 202, 0.0),
        (Reply(400, {"error": "validationFailed", "details": []}), 400, 0.0),
        (Reply(429, {"error": "rateLimited", "retryAfterMs": 1500}, {"Retry-After": "2"}), 429, 2.0),
        (Reply(503, {"error": "internal"}, {"Retry-After": "4"}), 503, 4.0),
        (Reply(202, b"<html>not ours</html>"), 0, 0.0),
        (Reply(raw=b""), 0, 0.0),
        (Reply(raw=b"SSH-2.0-OpenSSH_9\r\n"), 0, 0.0),
        (Reply(raw=b"\x00\xff" * 500), 0, 0.0),
        (Reply(raw=b"HTTP/1.1 202 OK\r\nContent-Length: 500\r\n\r\n{"), 0, 0.0),
        (Reply(raw=b"HTTP/1.1 202 OK\r\nContent-Length: many\r\n\r\n"), 0, 0.0),
        (Reply(raw=b"HTTP/1.1 202 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"), 0, 0.0),
    ],
)
def test_every_kind_of_answer_is_understood(
    ingest: Ingest, uploader: Uploader, reply: Reply, status: int, wait: float
) -> None:
    ingest.answers.append(reply)
    answer = uploader.post([EVENT])
    assert (answer.status, answer.wait) == (status, wait)
    assert uploader.post([EVENT]) == Answer(202, accepted=1)


def test_connection_is_kept_between_batches(ingest: Ingest, uploader: Uploader) -> None:
    for _ in range(5):
        assert uploader.post([EVENT]).status == 202
    assert ingest.connections == 1


def test_idle_connection_that_the_server_closed_is_replaced_without_a_pause(
    ingest: Ingest, uploader: Uploader
) -> None:
    ingest.answers.append(Reply(raw=b"HTTP/1.1 202 Accepted\r\nContent-Length: 2\r\n\r\n{}"))
    assert uploader.post([EVENT]).status == 202
    connection = cast(http.client.HTTPConnection, uploader._connection)
    assert select.select([connection.sock], [], [], 60)[0]
    assert uploader.post([EVENT]).status == 202
    assert (ingest.connections, len(ingest.requests)) == (2, 2)


def test_closed_port_is_no_answer() -> None:
    assert Uploader(f"http://127.0.0.1:{free_port()}", "t", "s").post([EVENT]).status == 0
    assert Uploader("http://host.invalid", "t", "s").post([EVENT]).status == 0


def test_large_batches_are_gzipped_and_small_ones_are_not(ingest: Ingest, uploader: Uploader) -> None:
    uploader.post([EVENT])
    uploader.post([json.dumps({"id": "x" * 5_000}).encode()])
    assert [request.headers.get("content-encoding") for request in ingest.requests] == [None, "gzip"]
    assert len(gzip.compress(ingest.requests[1].body)) < 200


def test_path_of_the_ingest_url_is_kept(ingest: Ingest) -> None:
    with closing(Uploader(ingest.url + "/ingest/", "t", "s")) as uploader:
        uploader.post([EVENT])
    assert ingest.requests[0].path == "/ingest/v1/events:batch"


def test_delivery_waits_by_the_rules_and_reports_its_outcome(ingest: Ingest, uploader: Uploader) -> None:
    slept: list[float] = []
    ingest.answers += [Reply(500), Reply(429, {"retryAfterMs": 2500}), Reply(raw=b"")]
    delivery = deliver(uploader, [EVENT, EVENT], slept.append)
    assert (delivery.fate, delivery.posts, slept) == (Fate.DONE, 4, [1.0, 2.5, 2.0])
    ingest.answers += [Reply(401)]
    assert deliver(uploader, [EVENT], slept.append).fate is Fate.REFUSED
    ingest.answers += [Reply(500)] * 4
    assert deliver(uploader, [EVENT], slept.append).fate is Fate.GIVEN_UP


def test_batches_are_as_full_as_they_may_be() -> None:
    assert [len(batch) for batch in batches([b"x"] * 250)] == [100, 100, 50]
    assert list(batches([])) == []
    half = b"x" * (MAX_BODY_BYTES // 2)
    assert [len(batch) for batch in batches([half, half, b"y", b"x" * MAX_BODY_BYTES, b"z"])] == [1, 2, 1, 1]
    exact = (MAX_BODY_BYTES - BATCH_FRAME_BYTES - 1) // 2
    assert [len(batch) for batch in batches([b"x" * exact] * 2)] == [2]


def test_before_send_may_change_or_drop_an_event(start: Callable[..., Ingest]) -> None:
    def look_over(event: dict[str, Any]) -> dict[str, Any] | None:
        if event["error"]["message"] == "drop":
            return None
        if event["error"]["message"] == "fail":
            raise RuntimeError
        return {**event, "tags": {"looked": "over"}}

    ingest = start(before_send=look_over)
    for message in ("drop", "fail", "keep"):
        svc.capture_exception(ValueError(message))
    assert svc.flush(10)
    assert [event["tags"] for event in ingest.events] == [{"looked": "over"}]
    assert svc.stats()["dropped.beforeSend"] == 2


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_before_send_that_ends_the_thread_loses_only_its_event(start: Callable[..., Ingest]) -> None:
    def look_over(event: dict[str, Any]) -> dict[str, Any]:
        if event["error"]["message"] == "end":
            raise SystemExit
        return event

    ingest = start(before_send=look_over)
    svc.capture_exception(ValueError("end"))
    svc.flush(0.1)
    svc.capture_exception(ValueError("keep"))
    assert svc.flush(10)
    assert [event["error"]["message"] for event in ingest.events] == ["keep"]


def test_second_init_replaces_the_first_and_loses_nothing(start: Callable[..., Ingest]) -> None:
    start(flush_interval=60)
    svc.set_tag("a", "b")
    svc.capture_exception(ValueError("first"))
    ingest = start()
    svc.capture_exception(ValueError("second"))
    assert svc.flush(10)
    assert [event["error"]["message"] for event in ingest.events] == ["first", "second"]
    assert ingest.events[1]["tags"] == {"handled": "yes"}


def test_capture_that_finds_the_queue_full_gives_no_id(start: Callable[..., Ingest]) -> None:
    start(queue_size=1, flush_interval=60)
    assert svc.capture_exception(ValueError("first")) is not None
    assert svc.capture_exception(ValueError("second")) is None
    assert svc.stats() == {"captured": 2, "dropped.queueFull": 1}
