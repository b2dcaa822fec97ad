"""Automatic tags: their values, the options that switch them off, and that a failing one loses no event."""

import asyncio
import json
import logging
import socket
import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any, Never
from wsgiref.util import setup_testing_defaults

import msgspec
import pytest
from celery import Celery, signals
from fastapi import APIRouter, FastAPI
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Mount, Route

import svc
import svc.celery
import svc.flask
import svc.starlette
from schemas.event import Event
from svc.request_tags import request_tags
from tests.unit.svc.fuzzed import client
from tests.unit.svc.ingest import Ingest
from tests.unit.svc.test_frameworks import aget

Start = Callable[..., Ingest]
HOST = "http://shop"


def tags(ingest: Ingest) -> list[dict[str, str]]:
    """The tags of each event, in order."""
    assert svc.flush(10)
    return [event.get("tags", {}) for event in ingest.events]


def failing(*_: Any, **__: Any) -> Never:
    raise ValueError("m")


async def fail(_request: Any) -> Never:
    raise ValueError("m")


def of_request(app: Any, url: str) -> None:
    """Let a WSGI application answer the request of a URL of the host `shop`."""
    path, _, query = url.partition("?")
    environ: dict[str, Any] = {"PATH_INFO": path, "QUERY_STRING": query, "HTTP_HOST": "shop"}
    setup_testing_defaults(environ)
    with pytest.raises(ValueError, match="m"):
        app(environ, lambda *_: None)


@pytest.mark.parametrize("plain", [False, True], ids=["of FastAPI", "of Starlette"])
async def test_fastapi_names_the_route_with_the_prefix_of_its_routers(start: Start, plain: bool) -> None:
    async def answer() -> None:
        raise ValueError("m")

    app, inner, outer = FastAPI(), APIRouter(prefix="/shops/{shop}"), APIRouter(prefix="/v1")
    if plain:
        inner.add_route("/shops/{shop}/orders/{number}", fail)  # Starlette's method knows no prefix
    else:
        inner.add_api_route("/orders/{number}", answer)
    outer.include_router(inner)
    app.include_router(outer)
    svc.starlette.watch(app)
    ingest = start()
    await aget(app, "/v1/shops/a/orders/7")
    assert [each["route"] for each in tags(ingest)] == ["/v1/shops/{shop}/orders/{number}"]


async def test_route_of_fastapi_that_answers_in_a_thread_is_named_with_the_thread(start: Start) -> None:
    app = FastAPI()

    @app.get("/orders/{number}")
    def answer(number: int) -> None:
        svc.capture_exception(ValueError(str(number)))

    svc.starlette.watch(app)
    ingest = start()
    await aget(app, "/orders/7")
    of_the_request = {"method": "GET", "route": "/orders/{number}", "url": f"{HOST}/orders/7"}
    assert tags(ingest) == [{"handled": "yes", **of_the_request, "thread": "AnyIO worker thread"}]


@pytest.mark.parametrize("kind", [Starlette, FastAPI])
async def test_route_of_a_mounted_application_begins_where_it_is_mounted(
    start: Start, kind: type[Starlette]
) -> None:
    async def foreign(_scope: Any, _receive: Any, _send: Any) -> None:
        raise ValueError("m")

    inner = kind(routes=[Route("/orders/{number}", fail)])
    app = kind(routes=[Route("/plain/{number}", fail), Mount("/v1", inner), Mount("/files", foreign)])
    svc.starlette.watch(app)
    ingest = start()
    for path in ("/plain/7", "/v1/orders/7", "/files/a.png"):
        await aget(app, path)
    assert [(each["route"], each["url"]) for each in tags(ingest)] == [
        ("/plain/{number}", f"{HOST}/plain/7"),
        ("/v1/orders/{number}", f"{HOST}/v1/orders/7"),
        ("/files", f"{HOST}/files/a.png"),
    ]


async def test_error_before_a_route_is_found_has_none(start: Start) -> None:
    class Broken:
        def __init__(self, app: Any) -> None:
            pass

        async def __call__(self, *_: Any) -> None:
            raise ValueError("m")

    app = Starlette(routes=[Route("/", fail)])
    app.add_middleware(Broken)
    svc.starlette.watch(app)
    ingest = start()
    await aget(app, "/")
    assert tags(ingest) == [{"handled": "no", "method": "GET", "url": f"{HOST}/"}]


async def test_error_that_an_endpoint_captures_itself_has_its_request_too(start: Start) -> None:
    async def answer(_request: Any) -> Any:
        svc.capture_exception(ValueError("by hand"))
        raise ValueError("m")

    app = Starlette(routes=[Route("/{number}", answer)])
    svc.starlette.watch(app)
    ingest = start()
    await aget(app, "/7")
    svc.capture_exception(ValueError("outside"))
    of_the_request = {"method": "GET", "route": "/{number}", "url": f"{HOST}/7"}
    assert tags(ingest) == [
        {"handled": "yes", **of_the_request},
        {"handled": "no", **of_the_request},
        {"handled": "yes"},
    ]


@pytest.mark.parametrize(
    ("key", "handled"), [(ValueError, "yes"), (Exception, "no"), (500, "no")], ids=["own", "all", "500"]
)
async def test_only_a_handler_of_this_very_error_has_handled_it(start: Start, key: Any, handled: str) -> None:
    async def unavailable(_request: Any, _error: Exception) -> Response:
        return Response(status_code=500)

    app = Starlette(routes=[Route("/", fail)], exception_handlers={key: unavailable})
    svc.starlette.watch(app)
    ingest = start()
    assert await aget(app, "/") == 500
    assert [each["handled"] for each in tags(ingest)] == [handled]


def test_url_has_no_secrets_and_is_cut_to_the_limit(start: Start) -> None:
    ingest = start()
    for url in (
        "/a b?page=3&token=abc",
        "/callback?code=abc&mail=jo%40example.com",
        "/" + "x" * 5_000 + "?token=abc",
    ):
        of_request(svc.WsgiMiddleware(failing), url)
    plain, callback, long = [each["url"] for each in tags(ingest)]
    assert plain == f"{HOST}/a%20b?page=3&token=***"
    assert callback == f"{HOST}/callback?code=***&mail=***"
    assert (len(long), long[-1]) == (200, "…")


async def test_asgi_url_is_as_the_client_wrote_it(start: Start) -> None:
    scope = {
        "type": "websocket",
        "scheme": "wss",
        "path": "/größe ?",
        "query_string": b"key=abc&n=1",
        "headers": [(b"host", b"shop:8443")],
    }
    ingest = start()
    for request in (scope, {**scope, "headers": [], "server": ("10.0.0.7", 80)}):
        with pytest.raises(ValueError, match="m"):
            await svc.AsgiMiddleware(failing)(request, failing, failing)
    assert tags(ingest) == [
        {"handled": "no", "url": "wss://shop:8443/gr%C3%B6%C3%9Fe%20%3F?key=***&n=1"},
        {"handled": "no", "url": "wss://10.0.0.7:80/gr%C3%B6%C3%9Fe%20%3F?key=***&n=1"},
    ]


def test_tags_of_the_application_have_precedence(start: Start) -> None:
    def app(environ: dict[str, Any], _start: Any) -> Iterable[bytes]:
        svc.set_tags({"route": "/mine", "handled": "partly", "host": "mine"})
        raise ValueError("m")

    ingest = start(host="ours")
    of_request(svc.WsgiMiddleware(app, lambda _: {"tags": {"url": "described"}}), "/a")
    assert tags(ingest) == [
        {"route": "/mine", "handled": "partly", "host": "mine", "url": "described", "method": "GET"}
    ]


@pytest.mark.parametrize(
    ("given_count", "added"), [(60, set()), (49, {"handled"}), (48, {"handled", "host"})]
)
def test_our_tags_are_left_out_where_there_is_no_room(
    start: Start, given_count: int, added: set[str]
) -> None:
    ingest = start(host="a")
    own = {f"key{n}": "v" for n in range(given_count)}
    svc.set_tags(own)
    svc.capture_exception(ValueError())
    (sent,) = tags(ingest)
    assert len(sent) == 50
    assert sent.keys() - own.keys() == added


@pytest.mark.parametrize(
    ("off", "left"),
    [
        ("handled", {"method", "url", "thread"}),
        ("requests", {"handled", "thread"}),
        ("thread", {"handled", "method", "url"}),
    ],
)
def test_each_is_turned_off_by_its_own_switch(start: Start, off: str, left: set[str]) -> None:
    ingest = start(capture={off: False})
    thread = threading.Thread(target=of_request, args=(svc.WsgiMiddleware(failing), "/a"))
    thread.start()
    thread.join()
    assert [set(each) for each in tags(ingest)] == [left]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
async def test_errors_of_hooks_are_unhandled(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "excepthook", lambda *_: None)
    ingest = start()
    sys.excepthook(ValueError, ValueError("main"), None)
    thread = threading.Thread(target=failing, name="the importer")
    thread.start()
    thread.join()
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda *_: None)
    loop.call_exception_handler({"message": "m", "exception": ValueError("loop")})
    assert tags(ingest) == [{"handled": "no"}, {"handled": "no", "thread": "the importer"}, {"handled": "no"}]


def test_logged_exception_was_handled_unless_a_server_logs_it(start: Start) -> None:
    ingest = start(capture={"logs": True})
    for name in ("shop", "aiohttp.server"):
        logging.getLogger(name).error("failed", exc_info=ValueError(name))
    assert tags(ingest) == [{"handled": "yes"}, {"handled": "no"}]


@pytest.mark.parametrize(
    ("host", "tag"),
    [(True, {"host": socket.gethostname()}), ("web-3", {"host": "web-3"}), (False, {}), ("", {}), (7, {})],
)
def test_host_is_sent_only_if_asked_for(start: Start, host: Any, tag: dict[str, str]) -> None:
    ingest = start(host=host)
    svc.capture_exception(ValueError())
    assert tags(ingest) == [{"handled": "yes", **tag}]


def task() -> Any:
    """A task that captures an error and fails with another."""
    app = Celery("shop", broker="memory://")
    app.conf.task_always_eager = True
    svc.celery.watch()

    def pay() -> None:
        svc.capture_exception(ValueError("by hand"))
        raise ValueError("m")

    return app.task(name="shop.pay")(pay)


@pytest.mark.parametrize(("switch", "named"), [(True, {"task": "shop.pay"}), (False, {})])
def test_events_of_a_task_have_its_name(start: Start, switch: bool, named: dict[str, str]) -> None:
    ingest = start(capture={"requests": switch})
    task().delay()
    assert tags(ingest) == [{"handled": "yes", **named}, {"handled": "no", **named}]


def test_task_that_failed_without_beginning_here_has_its_name(start: Start) -> None:
    ingest = start()
    pay = task()
    signals.task_failure.send(sender=pay, exception=ValueError("the worker was killed"))
    assert tags(ingest) == [{"handled": "no", "task": "shop.pay"}]


class Hostile:
    """An object of a framework that fails however it is used."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)


@pytest.mark.parametrize(
    "part", ["type", "method", "path", "headers", "route", "root_path", "scheme", "werkzeug.request"]
)
async def test_part_of_a_request_that_cannot_be_read_loses_its_tag_and_not_the_event(
    start: Start, part: str
) -> None:
    scope = {"type": "http", "method": "GET", "path": "/", "headers": [], part: Hostile()}
    ingest = start()
    with pytest.raises(ValueError, match="m"):
        await svc.AsgiMiddleware(failing)(scope, failing, failing)
    (sent,) = tags(ingest)
    assert sent["handled"] == "no"


def test_thread_without_a_name_loses_only_its_tag(start: Start) -> None:
    class Nameless(threading.Thread):
        @property
        def name(self) -> str:  # type: ignore[override]
            raise RuntimeError

    ingest = start()
    thread = threading.Thread.__new__(Nameless)
    threading.Thread.__init__(thread, target=lambda: svc.capture_exception(ValueError()))
    thread.start()
    thread.join()
    assert tags(ingest) == [{"handled": "yes"}]


parts = st.one_of(st.none(), st.integers(), st.text(st.characters(exclude_categories=[])), st.binary())
headers = st.lists(st.tuples(st.sampled_from([b"host", b"cookie"]), st.binary()), max_size=3)
wsgi = st.fixed_dictionaries(
    {},
    optional=dict.fromkeys(
        ("REQUEST_METHOD", "wsgi.url_scheme", "HTTP_HOST", "SERVER_NAME", "SERVER_PORT", "SCRIPT_NAME", "PATH_INFO",
         "QUERY_STRING", "werkzeug.request"), parts
    ),
)  # fmt: skip
asgi = st.fixed_dictionaries(
    {"type": st.sampled_from(["http", "websocket"])},
    optional=dict.fromkeys(
        ("method", "scheme", "path", "query_string", "server", "route", "root_path"), parts
    )
    | {"headers": st.one_of(parts, headers)},
)


@given(st.one_of(wsgi, asgi))
def test_server_takes_the_event_of_any_request(request: dict[str, Any]) -> None:
    read = request_tags(request)
    assert all(type(value) is str for value in read.values())
    reporter, transport = client()
    reporter.capture(ValueError("m"), tags=None)
    sent = reporter._own_tags.added_to({}, handled=True, request=lambda: read)
    event = json.loads(transport.events[0]) | {"tags": sent}
    encoded = json.dumps(event).encode()
    assert all(len(value) <= 200 for value in (msgspec.json.decode(encoded, type=Event).tags or {}).values())
