"""Django handles exceptions itself, so WSGI/ASGI middleware never sees them; its signal reports each."""

import sys
from collections.abc import Callable, MutableMapping
from functools import partial
from typing import Any

from asgiref.sync import iscoroutinefunction
from django.core.signals import got_request_exception
from django.utils.decorators import sync_and_async_middleware

from svc.request_scope import scope_of
from svc.request_tags import request_tags
from svc.web import report


@sync_and_async_middleware
def middleware(get_response: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """First entry of MIDDLEWARE: reports errors that become a 500 and gives each request its own scope."""
    got_request_exception.connect(_failed, dispatch_uid="svc")

    def answer(request: Any) -> Any:
        with scope_of(_context(request)).active(partial(_tags, request)):
            return get_response(request)

    async def answer_async(request: Any) -> Any:
        with scope_of(_context(request)).active(partial(_tags, request)):
            return await get_response(request)

    return answer_async if iscoroutinefunction(get_response) else answer


def _failed(**_: Any) -> None:
    report(sys.exc_info()[1])


def _tags(request: Any) -> dict[str, str]:
    """The request's tags; Django keeps the route on its own request, without the leading slash."""
    tags = request_tags(_context(request))
    route = getattr(request.resolver_match, "route", None)
    if route is not None:
        tags["route"] = route if route.startswith("^") else f"/{route}"
    return tags


def _context(request: Any) -> MutableMapping[str, Any]:
    """The request's ASGI scope or WSGI environ."""
    context: MutableMapping[str, Any] = request.scope if hasattr(request, "scope") else request.META
    return context
