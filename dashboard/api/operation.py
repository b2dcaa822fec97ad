"""API operations, declared once for the router, the roles, the input checks and the OpenAPI document."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any, Final, Generic, TypeVar, get_args

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler
from msgspec import Struct

from dashboard import query_warnings
from dashboard.auth.access import Role
from dashboard.auth.auth import IDENTITY, author_of
from dashboard.auth.authorize import administered, authorized, require_issues, visible_projects
from dashboard.dependencies import State, state_of
from dashboard.http.inputs import decode_body, decode_query, read_event, read_issue
from dashboard.http.multipart import UploadedFile, read_files
from dashboard.http.paths import API
from dashboard.http.responses import conditional_response, json_response
from dashboard.person_query import with_person
from dashboard.requested_project import edit_project, project_of
from schemas.change_records import Author
from schemas.errors import WireError
from schemas.idempotency import request_id
from schemas.projects import Project
from schemas.read_api import KeyWarning
from storage.read.execute import track_partial
from storage.read.reader import ReadCall, Reader

Q = TypeVar("Q")
B = TypeVar("B")
A = TypeVar("A", bound=Struct)
KEY_HEADER: Final = "Idempotency-Key"


class NoInput(Struct, frozen=True):
    """No parameters, or no body."""


class Call(Generic[Q, B]):
    """One request to an operation: its validated query string and body, and the resources in its path."""

    def __init__(self, request: web.Request, query: Q, body: B) -> None:
        self._request = request
        self.query = query
        self.body = body

    @property
    def state(self) -> State:
        return state_of(self._request)

    @property
    def reader(self) -> Reader:
        return self.state.dependencies.reader

    @property
    def by(self) -> str:
        return self._request[IDENTITY].name

    @property
    def author(self) -> Author:
        """Who makes the change, and the way."""
        return author_of(self._request)

    @property
    def key(self) -> str:
        """The idempotency key; empty without one."""
        return self._request.headers.get(KEY_HEADER, "")

    def request_name(self, scope: str = "") -> str:
        """The request's name under its key (`schemas.idempotency`), empty without one; `scope` is a project."""
        return request_id(self.key, f"{self.by}/{scope}", self._request.method, self._request.path, self.body)

    def project(self) -> Project:
        """The project in the path, or without one the record of all projects. Raises HttpError."""
        return project_of(self._request)

    def visible_projects(self) -> list[Project]:
        """The projects that exist for the person."""
        return visible_projects(self._request)

    def administered(self) -> list[int] | None:
        """The projects that the person administers, None for all."""
        return administered(self._request)

    async def require_issues(self, issues: Sequence[str]) -> None:
        """Raises NotFound for an issue in the body that isn't of the path's project (`require_issues`)."""
        await require_issues(self._request, issues)

    async def warnings(self) -> list[KeyWarning]:
        """Unknown keys of the call's `query`."""
        text: str = getattr(self.query, "query", "")
        if "issue" in self._request.match_info:
            return await query_warnings.of_issue(self.state, self.issue(), text)
        return await query_warnings.of_project(self.state, self.project().number, text)

    async def with_warnings(self, work: Awaitable[A]) -> A:
        """The answer of `work` with its field `warnings` set."""
        answer, warnings = await asyncio.gather(work, self.warnings())
        return msgspec.structs.replace(answer, warnings=warnings)

    async def read_with_warnings(self, call: ReadCall[A]) -> A:
        """The answer of a read call with its field `warnings` set."""
        return await self.with_warnings(self.reader.read(call))

    async def edit(self, change: Callable[[Project], Project]) -> Project:
        """The path's project after a change, made once under the request's key; errors as in `edit_project`."""
        return await edit_project(self._request, change, self.request_name(self.project().id))

    async def files(self, names: Collection[str], most_bytes: int) -> dict[str, UploadedFile]:
        """The parts of a `multipart/form-data` body, each of at most so many bytes. Raises HttpError."""
        return await read_files(self._request, names, most_bytes)

    def issue(self) -> str:
        return read_issue(self._request.match_info["issue"])

    def event(self) -> str:
        """The event in the path: a uuid, `latest` or `oldest`."""
        return read_event(self._request.match_info["event"])

    def path(self, name: str) -> str:
        return str(self._request.match_info[name])


Handle = Callable[[Call[Any, Any]], Awaitable[Any]]


class Operation(Struct, frozen=True):
    """`handler` is annotated with the query string, the body and the answer.

    `needs` is the role in the path's project, or everywhere where the path has none. `errors` lists those that
    not every operation has. A trial changes nothing though it isn't a GET. `files` are the parts of a
    `multipart/form-data` body, of which the first is required. Those `of_uploads` are also for keys with the
    scope `artifacts`, and a repeat changes nothing anyway.
    """

    method: str
    path: str
    summary: str
    handler: Handle
    needs: Role
    status: int = 200
    errors: tuple[WireError, ...] = ()
    is_trial: bool = False
    files: tuple[str, ...] = ()
    of_uploads: bool = False

    @property
    def query(self) -> type[Struct]:
        return self._types[0]

    @property
    def body(self) -> type[Struct]:
        return self._types[1]

    @property
    def answer(self) -> type[Struct]:
        return self._types[2]

    @property
    def _types(self) -> tuple[type[Struct], type[Struct], type[Struct]]:
        given = inspect.get_annotations(self.handler)
        return *get_args(given["call"]), given["return"]

    @property
    def takes_key(self) -> bool:
        """Whether it is a change, which an `Idempotency-Key` makes idempotent."""
        return self.method != "GET" and not (self.is_trial or self.of_uploads)


def operation(
    method: str,
    path: str,
    needs: Role,
    *,
    status: int = 200,
    errors: tuple[WireError, ...] = (),
    is_trial: bool = False,
    files: tuple[str, ...] = (),
    of_uploads: bool = False,
) -> Callable[[Handle], Operation]:
    """Makes an operation of a handler, whose docstring is the summary."""

    def declared(handler: Handle) -> Operation:
        summary = (handler.__doc__ or "").removesuffix(".")
        return Operation(method, path, summary, handler, needs, status, errors, is_trial, files, of_uploads)

    return declared


def add_operations(app: web.Application, operations: tuple[Operation, ...]) -> None:
    """Add a route for each operation; reads also answer HEAD."""
    for operation in operations:
        is_read = operation.method == "GET"
        handler = _read_handler(operation) if is_read else _change_handler(operation)
        for method in ("GET", "HEAD") if is_read else (operation.method,):
            allowed = authorized(handler, operation.needs, of_uploads=operation.of_uploads)
            app.router.add_route(method, API + operation.path, allowed)


def _query(request: web.Request, kind: type[Struct]) -> Struct:
    """The query string; a query of the query language in it is that of who asks."""
    given = decode_query(request, kind)
    text = getattr(given, "query", "")
    return msgspec.structs.replace(given, query=with_person(request, text)) if text else given


def _read_handler(operation: Operation) -> Handler:
    kind = operation.query

    async def handle(request: web.Request) -> web.StreamResponse:
        call = Call(request, _query(request, kind), NoInput())
        with track_partial() as note:
            answer = await operation.handler(call)
        return conditional_response(request, answer, partial=note.is_partial)

    return handle


def _change_handler(operation: Operation) -> Handler:
    query_kind, body_kind = operation.query, operation.body

    async def handle(request: web.Request) -> web.StreamResponse:
        query = _query(request, query_kind)
        body = await decode_body(request, body_kind) if body_kind is not NoInput else NoInput()
        answer = await operation.handler(Call(request, query, body))
        return json_response(answer, operation.status)

    return handle
