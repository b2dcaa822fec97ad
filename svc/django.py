"""Django: it answers 500 by itself, so that no error reaches a middleware around it; its signal tells of each."""

import sys
from collections.abc import Callable, MutableMapping
from typing import Any

from asgiref.sync import iscoroutinefunction
from django.core.signals import got_request_exception
from django.utils.decorators import sync_and_async_middleware

from svc.request_scope import scope_of
from svc.web import report


@sync_and_async_middleware
def middleware(get_response: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The first of the setting MIDDLEWARE: reports what becomes a 500, and gives each request a scope of its own."""
    got_request_exception.connect(_failed, dispatch_uid="svc")

    def answer(request: Any) -> Any:
        with scope_of(_about(request)).active():
            return get_response(request)

    async def answer_async(request: Any) -> Any:
        with scope_of(_about(request)).active():
            return await get_response(request)

    return answer_async if iscoroutinefunction(get_response) else answer


def _failed(**_: Any) -> None:
    report(sys.exc_info()[1])


def _about(request: Any) -> MutableMapping[str, Any]:
    """What the server gave: an ASGI scope or a WSGI environ."""
    about: MutableMapping[str, Any] = request.scope if hasattr(request, "scope") else request.META
    return about
