"""Starlette and FastAPI: unhandled errors, and errors that an exception handler answers with status 500 or above."""

from collections.abc import Awaitable, Callable
from inspect import iscoroutinefunction
from typing import Any, Final

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.types import ASGIApp

from svc.reporting import never_raises
from svc.web import AsgiMiddleware, Describe, report

_WATCHED: Final = "svc_watched"
_CATCH_ALL: Final = (Exception, 500)
"""A handler of these answers otherwise unhandled exceptions."""


@never_raises(None)
def watch(app: Starlette, describe: Describe | None = None) -> None:
    """Report each error once and give each request its own scope. Call it before the first request."""
    if hasattr(app.state, _WATCHED):
        return
    if app.middleware_stack is not None:
        raise RuntimeError("watch the application before it serves its first request")
    setattr(app.state, _WATCHED, True)
    build = app.build_middleware_stack

    def build_watched() -> ASGIApp:
        # All handlers are known only now: the application may add some after `watch`.
        handlers: dict[Any, Any] = {
            HTTPException: ExceptionMiddleware(app.router).http_exception,
            **app.exception_handlers,
        }
        app.exception_handlers = {
            key: _watched(handler, describe, handled=key not in _CATCH_ALL)
            for key, handler in handlers.items()
        }
        return AsgiMiddleware(build(), describe)

    replaceable: Any = app
    replaceable.build_middleware_stack = build_watched


def _watched(
    handler: Callable[..., Any], describe: Describe | None, *, handled: bool
) -> Callable[..., Awaitable[Any]]:
    """Wrap the handler: report an error that it answers with 500 or above."""
    if iscoroutinefunction(handler) or iscoroutinefunction(getattr(handler, "__call__", None)):  # noqa: B004
        answer: Callable[..., Awaitable[Any]] = handler
    else:

        async def answer(request: Any, error: Exception) -> Any:
            return await run_in_threadpool(handler, request, error)

    async def answer_and_report(request: Any, error: Exception) -> Any:
        response = await answer(request, error)
        if getattr(response, "status_code", 0) >= 500:
            report(error, request.scope, describe, handled=handled)
        return response

    return answer_and_report
