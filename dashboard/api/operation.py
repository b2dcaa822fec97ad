"""An operation of the API, declared once: the router, the checks of its input and the OpenAPI document read it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, Generic, TypeVar

import msgspec
from aiohttp import web
from msgspec import Struct

from control.project_edits import apply_once
from dashboard import query_warnings
from dashboard.auth.auth import IDENTITY
from dashboard.dependencies import State, state_of
from dashboard.http.conditional import Tagged, conditional_answer, tagged
from dashboard.http.errors import HttpError, not_found
from dashboard.http.inputs import decode_body, decode_query, read_event, read_issue, read_project
from dashboard.http.paths import API
from dashboard.http.wire import json_answer
from schemas.errors import WireError
from schemas.idempotency import request_id
from schemas.projects import Project
from storage.reader.answers import KeyWarning
from storage.reader.reader import ReadPort

Q = TypeVar("Q")
B = TypeVar("B")
A = TypeVar("A", bound=Struct)
KEY_HEADER: Final = "Idempotency-Key"


class NoInput(Struct, frozen=True):
    """No parameters, or no body."""


class Call(Generic[Q, B]):
    """One request for an operation: its checked query string and body, and what its path names."""

    def __init__(self, request: web.Request, query: Q, body: B) -> None:
        self._request = request
        self.query = query
        self.body = body

    @property
    def state(self) -> State:
        """What the application shares."""
        return state_of(self._request)

    @property
    def reader(self) -> ReadPort:
        """Where events are read."""
        return self.state.parts.reader

    @property
    def by(self) -> str:
        """Who asks."""
        return self._request[IDENTITY].name

    @property
    def key(self) -> str:
        """What makes the same change asked for again the same change; empty where nothing does."""
        return self._request.headers.get(KEY_HEADER, "")

    def named(self, scope: str = "") -> str:
        """The request's name under its key (`schemas.idempotency`), empty without one; `scope` is the project that remembers it."""
        asked = (self._request.method, self._request.path, self.body)
        return request_id(self.key, f"{self.by}/{scope}", *asked)

    def project(self) -> Project:
        """The project that the path names. Raises HttpError: it must exist, and projects must be known."""
        return find_project(self.state, self._request.match_info["project"])

    async def warnings(self) -> list[KeyWarning]:
        """What is doubtful in the call's `query`."""
        text: str = getattr(self.query, "query", "")
        if "issue" in self._request.match_info:
            return await query_warnings.of_issue(self.state, self.issue(), text)
        return await query_warnings.of_project(self.state, self.project().number, text)

    async def warned(self, answer: Awaitable[A]) -> A:
        """An answer that has a field for them with the call's warnings."""
        found, warnings = await asyncio.gather(answer, self.warnings())
        return msgspec.structs.replace(found, warnings=warnings)

    async def edit(self, change: Callable[[Project], Project]) -> Project:
        """The path's project after a change that is made once under the request's key.

        Raises HttpError, ProjectsUnavailable, KeyReused and what `change` raises.
        """
        project = self.project()
        request = self.named(project.id)
        edited = await self.state.parts.projects.edit(
            project.number, lambda old: apply_once(old, request, change)
        )
        if edited is None:
            raise not_found("there is no such project")
        return edited

    def issue(self) -> str:
        """The issue that the path names."""
        return read_issue(self._request.match_info["issue"])

    def event(self) -> str:
        """The event that the path names: a uuid, `latest` or `oldest`."""
        return read_event(self._request.match_info["event"])

    def path(self, name: str) -> str:
        """Any other part of the path."""
        return str(self._request.match_info[name])


class Operation(Struct, frozen=True, kw_only=True):
    """`answer`'s JSON is what `handler` returns; `errors` are those beyond the ones that every operation has.

    `polled` says that open pages ask for it again and again: equal calls share their answer for a moment. `is_trial` says that it
    changes nothing though it isn't a GET.
    """

    method: str
    path: str
    summary: str
    handler: Callable[[Call[Any, Any]], Awaitable[Any]]
    query: type[Struct] = NoInput
    body: type[Struct] = NoInput
    answer: type[Struct]
    status: int = 200
    errors: tuple[WireError, ...] = ()
    polled: bool = False
    is_trial: bool = False

    @property
    def takes_key(self) -> bool:
        """Whether it is a change that an `Idempotency-Key` makes once."""
        return self.method != "GET" and not self.is_trial


def find_project(state: State, text: str) -> Project:
    """The project of this id. Raises HttpError."""
    project = state.parts.projects.get(read_project(text))
    if project is None:
        if not state.parts.projects.loaded:
            raise HttpError(
                WireError.UNAVAILABLE, headers={"Retry-After": "2"}, sentence="projects aren't loaded yet"
            )
        raise not_found("there is no such project")
    return project


def add_operations(app: web.Application, operations: tuple[Operation, ...]) -> None:
    """Route each operation; what can be read can be asked for its head alone."""
    for operation in operations:
        if operation.method != "GET":
            app.router.add_route(operation.method, API + operation.path, _changer(operation))
            continue
        for method in ("GET", "HEAD"):
            app.router.add_route(method, API + operation.path, _reader(operation))


def _reader(operation: Operation) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def handle(request: web.Request) -> web.StreamResponse:
        call = Call(request, decode_query(request, operation.query), NoInput())

        async def make() -> Tagged:
            return tagged(await operation.handler(call))

        if not operation.polled:
            return conditional_answer(request, await make())
        shared, key = call.state.shared, (call.by, operation.path, *request.match_info.values(), call.query)
        refresh = "no-cache" in request.headers.get("Cache-Control", "").lower()
        if not refresh and (shared.kept(key) is not None or shared.is_pending(key)):
            call.state.metrics.shared_answers.inc()
        return conditional_answer(request, await shared.answer(key, make, refresh=refresh))

    return handle


def _changer(operation: Operation) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def handle(request: web.Request) -> web.StreamResponse:
        query = decode_query(request, operation.query)
        body = await decode_body(request, operation.body) if operation.body is not NoInput else NoInput()
        answer = await operation.handler(Call(request, query, body))
        return json_answer(answer, operation.status)

    return handle
