"""Applications on real frameworks: each error is one event with only its own request's scope."""

import asyncio
import contextlib
import importlib.util
import sys
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any
from wsgiref.util import setup_testing_defaults

import pytest
from django.core.handlers.asgi import ASGIHandler
from fastapi import FastAPI
from flask import Flask
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import Route

import svc.celery
import svc.flask
import svc.starlette
from tests.unit.svc.conftest import TOKEN, given_tags
from tests.unit.svc.ingest import Ingest

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
Event = dict[str, Any]
Loaded = Callable[[str], ModuleType]
Start = Callable[..., Ingest]
_MODULES: dict[str, ModuleType] = {}


@pytest.fixture
def load(start: Start, ingest: Ingest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Loaded]:
    """An example, imported as its server would; Django takes its settings once in a process, so it is imported once."""
    monkeypatch.setenv("SVC_TOKEN", TOKEN)
    monkeypatch.setenv("SVC_INGEST_URL", ingest.url)

    def load_example(name: str) -> ModuleType:
        if name not in _MODULES:
            spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
            assert spec is not None
            assert spec.loader is not None
            module = _MODULES[name] = sys.modules[name] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
        start(capture={"errors": True, "logs": True})
        return _MODULES[name]

    yield load_example
    monkeypatch.undo()


def get(app: Callable[..., Iterable[bytes]], path: str, **headers: str) -> str:
    """The status of a WSGI application's answer; its body is read and closed as a server does it."""
    environ: dict[str, Any] = {"PATH_INFO": path, **{f"HTTP_{k.upper()}": v for k, v in headers.items()}}
    setup_testing_defaults(environ)
    statuses: list[str] = []

    def start_response(status: str, *_: Any) -> Callable[[bytes], object]:
        statuses.append(status)
        return lambda _: None

    body = app(environ, start_response)
    try:
        b"".join(body)
    finally:
        getattr(body, "close", lambda: None)()
    return statuses[-1][:3]


async def aget(app: Any, path: str, **headers: str) -> int | None:
    """The status of an ASGI application's answer.

    An exception that the application passes on is the server's to log.
    """
    statuses: list[int] = []
    ended = asyncio.Event()
    requests = iter([{"type": "http.request", "body": b"", "more_body": False}])

    async def receive() -> MutableMapping[str, Any]:
        for message in requests:
            return message
        await ended.wait()
        return {"type": "http.disconnect"}

    async def send(message: MutableMapping[str, Any]) -> None:
        statuses.extend([message["status"]] if "status" in message else [])

    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "scheme": "http",
        "path": path, "raw_path": path.encode(), "query_string": b"", "root_path": "",
        "headers": [(b"host", b"shop"), *((k.replace("_", "-").encode(), v.encode()) for k, v in headers.items())],
        "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 2), "state": {},
    }  # fmt: skip
    with contextlib.suppress(Exception):
        await app(scope, receive, send)
    ended.set()
    return statuses[0] if statuses else None


def reported(ingest: Ingest) -> list[Event]:
    assert svc.flush(10)
    return ingest.events


def event_fields(event: Event) -> tuple[Any, ...]:
    """The scope's content of a request."""
    crumbs = [crumb["data"]["message"] for crumb in event.get("breadcrumbs", []) if crumb["type"] == "custom"]
    return event.get("user", {}).get("id"), given_tags(event), crumbs


def request_fields(event: Event) -> tuple[str | None, ...]:
    """The library's own facts about the request."""
    return tuple(event["tags"].get(key) for key in ("handled", "method", "route", "url"))


OF_ORDER_7 = ("jo", {"host": "a", "order": "7"}, ["started", "order 7 looked up"])


def begin() -> None:
    """The process's facts on every event."""
    svc.set_tag("host", "a")
    svc.add_breadcrumb("started")


@pytest.mark.parametrize("name", ["flask_app", "django_app"])
def test_wsgi_application_reports_an_error_once_with_only_its_request(
    load: Loaded, ingest: Ingest, name: str
) -> None:
    app = getattr(load(name), "app" if name == "flask_app" else "application")
    begin()
    assert [get(app, "/orders/6", x_user="eve"), get(app, "/orders/7", x_user="jo")] == ["200", "500"]
    assert get(app, "/nowhere") == "404"
    (event,) = reported(ingest)
    assert event["error"]["type"] == "LookupError"
    assert event_fields(event) == OF_ORDER_7
    assert request_fields(event) == ("no", "GET", "/orders/<int:number>", "http://127.0.0.1/orders/7")
    assert [crumb["data"]["message"] for crumb in svc.get_breadcrumbs() if crumb["type"] == "custom"] == [
        "started"
    ]


@pytest.mark.parametrize("name", ["fastapi_app", "django_app"])
async def test_asgi_application_reports_an_error_once_with_only_its_request(
    load: Loaded, ingest: Ingest, name: str
) -> None:
    module = load(name)
    app = module.app if name == "fastapi_app" else ASGIHandler()
    begin()
    assert await aget(app, "/orders/6", x_user="eve") == 200
    assert await aget(app, "/orders/7", x_user="jo") == 500
    (event,) = reported(ingest)
    assert event["error"]["type"] == "LookupError"
    assert event_fields(event) == OF_ORDER_7
    route = "/orders/{number}" if name == "fastapi_app" else "/orders/<int:number>"
    assert request_fields(event) == ("no", "GET", route, "http://shop/orders/7")


async def test_error_that_a_handler_answers_with_500_or_more_is_reported(
    load: Loaded, ingest: Ingest
) -> None:
    app = load("fastapi_app").app
    assert await aget(app, "/orders/8") == 503
    assert await aget(app, "/orders/eight") == 422
    assert [event["error"]["type"] for event in reported(ingest)] == ["ConnectionError"]


@pytest.mark.parametrize("kind", [Starlette, FastAPI])
async def test_http_exception_of_500_or_more_is_reported_without_a_handler_of_the_applications(
    start: Start, kind: type[Starlette]
) -> None:
    async def answer(request: Any) -> Any:
        raise HTTPException(int(request.path_params["status"]))

    ingest = start()
    app = kind(routes=[Route("/{status}", answer)])
    svc.starlette.watch(app)
    svc.starlette.watch(app)
    assert [await aget(app, "/404"), await aget(app, "/503")] == [404, 503]
    assert [event["error"]["type"] for event in reported(ingest)] == ["HTTPException"]


async def test_concurrent_requests_have_separate_scopes(start: Start) -> None:
    together = asyncio.Barrier(20)

    async def answer(request: Any) -> Any:
        svc.set_tag("number", request.path_params["number"])
        await together.wait()
        raise ValueError(request.path_params["number"])

    ingest = start()
    app = Starlette(routes=[Route("/{number}", answer)])
    svc.starlette.watch(app)
    await asyncio.gather(*(aget(app, f"/{number}") for number in range(20)))
    events = reported(ingest)
    assert len(events) == 20
    assert all(given_tags(event) == {"number": event["error"]["message"]} for event in events)


async def test_request_begun_within_another_has_a_separate_scope(start: Start) -> None:
    # As a server does with requests that wait on one connection.
    async def answer(request: Any) -> Any:
        if request.path_params["name"] == "first":
            svc.set_tag("first", "1")
            await asyncio.create_task(aget(app, "/second"))
        raise ValueError(request.path_params["name"])

    ingest = start()
    app = Starlette(routes=[Route("/{name}", answer)])
    svc.starlette.watch(app)
    await aget(app, "/first")
    assert {event["error"]["message"]: given_tags(event) for event in reported(ingest)} == {
        "second": {},
        "first": {"first": "1"},
    }


def test_threads_of_a_server_have_separate_scopes(start: Start) -> None:
    app = Flask("shop")
    svc.flask.watch(app)
    svc.flask.watch(app)

    @app.get("/<number>")
    def answer(number: str) -> str:
        svc.set_tag("number", number)
        raise ValueError(number)

    ingest = start()
    with ThreadPoolExecutor(4) as threads:
        assert set(threads.map(lambda number: get(app, f"/{number}"), range(20))) == {"500"}
    events = reported(ingest)
    assert sorted(int(event["error"]["message"]) for event in events) == list(range(20))
    assert all(given_tags(event) == {"number": event["error"]["message"]} for event in events)


def test_error_that_flask_passes_on_is_one_event_behind_a_second_middleware(start: Start) -> None:
    app = Flask("shop")
    app.config["PROPAGATE_EXCEPTIONS"] = True
    svc.flask.watch(app, lambda environ: {"tags": {"path": environ["PATH_INFO"]}})

    @app.get("/")
    def answer() -> str:
        raise ValueError("once")

    ingest = start()
    with pytest.raises(ValueError, match="once"):
        get(svc.WsgiMiddleware(app), "/")
    (event,) = reported(ingest)
    assert given_tags(event) == {"path": "/"}


def test_error_while_flask_streams_is_reported_with_the_requests_scope(start: Start) -> None:
    app = Flask("shop")
    svc.flask.watch(app)

    @app.get("/")
    def answer() -> Any:
        svc.set_tag("of", "the request")

        def parts() -> Iterator[str]:
            yield "first"
            raise ValueError("half way")

        return parts()

    ingest = start()
    with pytest.raises(ValueError, match="half way"):
        get(app, "/")
    (event,) = reported(ingest)
    assert given_tags(event) == {"of": "the request"}


def test_failed_task_is_reported_once_with_its_name_and_without_its_arguments(
    load: Loaded, ingest: Ingest
) -> None:
    module = load("celery_app")
    begin()
    module.app.conf.task_always_eager = True
    assert [module.pay.delay(6).state, module.pay.delay(7).state] == ["SUCCESS", "FAILURE"]
    (event,) = reported(ingest)
    assert event["error"]["type"] == "TimeoutError"
    assert event_fields(event) == (
        None,
        {"host": "a", "task": "shop.pay", "order": "7"},
        ["started", "order 7 is paid"],
    )


def test_failure_is_one_event_though_celery_logs_it_too(load: Loaded, ingest: Ingest) -> None:
    class Unpicklable(Exception):
        def __reduce__(self) -> Any:
            raise TypeError

    app = load("celery_app").app
    app.conf.task_always_eager = True

    @app.task(name="shop.refund")
    def refund(argument: str) -> None:
        svc.set_tag("length", str(len(argument)))
        raise Unpicklable("bank")

    private = "-".join(["not", "to", "be", "sent"])
    refund.delay(private)
    (event,) = reported(ingest)
    assert event["error"]["type"] == "Unpicklable"
    assert given_tags(event) == {"task": "shop.refund", "length": "14"}
    assert private not in str(event)
