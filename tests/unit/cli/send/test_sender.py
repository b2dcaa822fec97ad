"""Sending to an endpoint with scripted answers."""

import gzip
import json
from collections.abc import AsyncIterator, Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from rich.console import Console

from cli.send.batch_sender import Sender, SendReport, retry_pause
from cli.send.send_batches import batches
from cli.send.send_command import bar, events_of, print_send_report
from svc.answers import Answer as LibraryAnswer
from svc.answers import RetryPolicy

Answer = tuple[int, dict[str, Any]]


class Endpoint:
    """Answers each batch by `plan`, a function of the events and the number of earlier requests."""

    def __init__(self) -> None:
        self.plan: Callable[[list[Any], int], Answer] = lambda events, _: (
            202,
            {"accepted": len(events), "rejected": 0, "errors": []},
        )
        self.batches: list[list[Any]] = []
        self.headers: list[dict[str, str]] = []

    async def handle(self, request: web.Request) -> web.Response:
        events = json.loads(await request.read())["events"]
        self.headers.append(dict(request.headers))
        self.batches.append(events)
        status, body = self.plan(events, len(self.batches) - 1)
        return web.json_response(body, status=status)


@pytest.fixture
async def endpoint() -> AsyncIterator[tuple[Endpoint, str]]:
    server_double = Endpoint()
    app = web.Application()
    app.router.add_post("/v1/events:batch", server_double.handle)
    server = TestServer(app)
    await server.start_server()
    yield server_double, str(server.make_url("/"))
    await server.close()


def events(count: int) -> list[bytes]:
    return [json.dumps({"n": n, "pad": "x" * 20}).encode() for n in range(count)]


async def test_every_event_is_sent_once_and_counted(endpoint: tuple[Endpoint, str]) -> None:
    server_double, url = endpoint
    report = await Sender(url, "token").send(batches(events(250)))
    assert sorted(event["n"] for batch in server_double.batches for event in batch) == list(range(250))
    assert (report.accepted, report.rejected, report.refused, report.batches) == (250, 0, 0, 3)
    assert report.clean
    assert server_double.headers[0]["Authorization"] == "Bearer token"
    assert server_double.headers[0]["Content-Encoding"] == "gzip"


async def test_rejected_events_are_named_by_their_place_among_all(endpoint: tuple[Endpoint, str]) -> None:
    server_double, url = endpoint
    fault = {"index": 3, "error": "validationFailed", "details": [{"field": "id", "message": "is required"}]}

    def plan(got: list[Any], _: int) -> Answer:
        bad = got[0]["n"] == 100
        return 202, {"accepted": len(got) - bad, "rejected": int(bad), "errors": [fault] if bad else []}

    server_double.plan = plan
    report = await Sender(url, "token").send(batches(events(200)))
    assert (report.accepted, report.rejected) == (199, 1)
    assert not report.clean
    assert report.problems == [{"index": 103, "error": "validationFailed", "details": fault["details"]}]


async def test_batch_that_is_refused_is_not_tried_again(endpoint: tuple[Endpoint, str]) -> None:
    server_double, url = endpoint
    server_double.plan = lambda _, __: (401, {"error": "unauthorized"})
    report = await Sender(url, "bad").send(batches(events(5)))
    assert (report.accepted, report.refused, report.retries) == (0, 5, 0)
    assert report.problems[0]["error"] == "401 unauthorized"
    assert len(server_double.batches) == 1


async def test_batch_is_tried_again_after_an_error_of_ours(endpoint: tuple[Endpoint, str]) -> None:
    server_double, url = endpoint
    server_double.plan = lambda got, attempts: (
        (503, {"error": "internal"})
        if attempts == 0
        else (202, {"accepted": len(got), "rejected": 0, "errors": []})
    )
    report = await Sender(url, "token").send(batches(events(5)))
    assert (report.accepted, report.retries) == (5, 1)


async def test_unavailable_server_is_given_up_after_the_retry_time() -> None:
    report = await Sender("http://127.0.0.1:1", "token", retry_for=0).send(batches(events(5)))
    assert (report.accepted, report.refused) == (0, 5)
    assert report.problems[0]["error"] == "no answer: Connection refused"


async def test_progress_ends_with_everything(endpoint: tuple[Endpoint, str]) -> None:
    _, url = endpoint
    heard: list[int] = []

    def progress(report: SendReport) -> None:
        heard.append(report.accepted)

    await Sender(url, "token", progress=progress).send(batches(events(150)))
    assert heard[-1] == 150


@pytest.mark.parametrize(
    ("answer", "attempt", "pause"),
    [
        (LibraryAnswer(429, wait=30.0), 0, 30.0),
        (LibraryAnswer(429, wait=0.01), 2, 1.0),
        (LibraryAnswer(503), 0, 1.0),
        (LibraryAnswer(503, wait=9.0), 0, 9.0),
        (LibraryAnswer(500), 1, 2.0),
        (LibraryAnswer(0), 9, 8.0),
        (LibraryAnswer(400), 0, None),
        (LibraryAnswer(401), 0, None),
        (LibraryAnswer(413), 0, None),
    ],
)
def test_pause_follows_the_clients_rules(answer: LibraryAnswer, attempt: int, pause: float | None) -> None:
    assert retry_pause(answer, RetryPolicy(), attempt) == pause


@pytest.mark.parametrize("damage", [b"not gzip at all", gzip.compress(b'{"n":1}\n' * 50_000)[:-40]])
async def test_a_truncated_file_is_reported_and_the_others_are_sent(
    endpoint: tuple[Endpoint, str], tmp_path: Path, damage: bytes
) -> None:
    server_double, url = endpoint
    damaged, whole = tmp_path / "damaged.jsonl.gz", tmp_path / "whole.jsonl"
    damaged.write_bytes(damage)
    whole.write_bytes(b'{"whole":1}\n')
    sender = Sender(url, "token")
    with bar(Console(file=StringIO())) as progress:
        report = await sender.send(batches(events_of((damaged, whole), progress, sender.report)))
    assert {"whole": 1} in [event for batch in server_double.batches for event in batch]
    assert report.accepted == report.events
    assert [problem.split(": ")[0] for problem in report.unread] == [str(damaged)]
    assert not report.clean
    shown = StringIO()
    print_send_report(report, Console(file=shown, width=200))
    assert f"not read completely: {damaged}" in shown.getvalue()
