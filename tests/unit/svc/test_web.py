"""WSGI and ASGI middleware: it captures unhandled errors and changes nothing."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, MutableMapping
from typing import Any
from wsgiref.util import setup_testing_defaults

import pytest

import svc
from tests.unit.svc.conftest import given_tags
from tests.unit.svc.ingest import Ingest

Start = Callable[..., Ingest]


def environ(path: str = "/") -> dict[str, Any]:
    made: dict[str, Any] = {"PATH_INFO": path}
    setup_testing_defaults(made)
    return made


def respond(status: str, headers: list[tuple[str, str]]) -> None:
    """A `start_response` that is ignored."""


def reported(ingest: Ingest) -> list[dict[str, Any]]:
    assert svc.flush(10)
    return ingest.events


def test_wsgi_error_while_the_answer_is_read_is_captured_too(start: Start) -> None:
    closed: list[bool] = []

    class Answer:
        def __iter__(self) -> Iterator[bytes]:
            yield b"first"
            raise ValueError("half way")

        def close(self) -> None:
            closed.append(True)

    ingest = start()
    body = svc.WsgiMiddleware(lambda _environ, _start: Answer())(environ(), respond)
    with pytest.raises(ValueError, match="half way"):
        list(body)
    body.close()  # type: ignore[attr-defined]
    assert closed == [True]
    assert [event["error"]["message"] for event in reported(ingest)] == ["half way"]


def test_wsgi_answer_that_is_whole_is_passed_on_as_it_is(start: Start) -> None:
    start()
    answer = [b"all"]
    assert svc.WsgiMiddleware(lambda _environ, _start: answer)(environ(), respond) is answer


def test_only_the_line_of_the_request_and_the_result_of_describe_are_sent(start: Start) -> None:
    def app(_environ: dict[str, Any], _start: Any) -> Iterable[bytes]:
        raise ValueError("m")

    def describe(request: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"tags": {"path": request["PATH_INFO"]}, "user": {"id": "7"}}

    ingest = start()
    private = {"HTTP_COOKIE": "private", "HTTP_AUTHORIZATION": "private", "REMOTE_ADDR": "private"}
    for middleware in (svc.WsgiMiddleware(app), svc.WsgiMiddleware(app, describe)):
        with pytest.raises(ValueError, match="m"):
            middleware({**environ("/orders"), **private}, respond)
    plain, described = reported(ingest)
    assert plain["tags"] == {"handled": "no", "method": "GET", "url": "http://127.0.0.1/orders"}
    assert "private" not in str({**plain, "error": None})
    assert "user" not in plain
    assert given_tags(described) == {"path": "/orders"}
    assert described["user"] == {"id": "7"}


def test_describe_that_fails_does_not_hide_the_error(start: Start) -> None:
    def app(_environ: dict[str, Any], _start: Any) -> Iterable[bytes]:
        raise ValueError("m")

    ingest = start()
    with pytest.raises(ValueError, match="m"):
        svc.WsgiMiddleware(app, lambda request: request["no such key"])(environ(), respond)
    assert [event["error"]["message"] for event in reported(ingest)] == ["m"]


def test_middleware_works_without_init() -> None:
    def app(_environ: dict[str, Any], _start: Any) -> Iterable[bytes]:
        raise ValueError("m")

    with pytest.raises(ValueError, match="m"):
        svc.WsgiMiddleware(app)(environ(), respond)


Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


async def test_asgi_lifespan_is_the_session(start: Start) -> None:
    sent: list[str] = []
    incoming = iter(["lifespan.startup", "lifespan.shutdown"])

    async def app(_scope: Any, receive: Receive, send: Send) -> None:
        while (message := await receive())["type"] != "lifespan.shutdown":
            await send({"type": message["type"] + ".complete"})

    async def receive() -> MutableMapping[str, Any]:
        return {"type": next(incoming)}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message["type"])

    start(capture={"sessions": True})
    svc.clear_breadcrumbs()
    await svc.AsgiMiddleware(app)({"type": "lifespan"}, receive, send)
    assert sent == ["lifespan.startup.complete"]
    assert [crumb["data"]["action"] for crumb in svc.get_breadcrumbs()] == ["active", "background"]


async def test_asgi_application_without_a_lifespan_is_no_error(start: Start) -> None:
    async def app(_scope: Any, _receive: Receive, _send: Send) -> None:
        raise ValueError("no lifespan here")

    async def nothing(*_: Any) -> Any:
        return None

    ingest = start()
    with pytest.raises(ValueError, match="no lifespan here"):
        await svc.AsgiMiddleware(app)({"type": "lifespan"}, nothing, nothing)
    assert reported(ingest) == []
