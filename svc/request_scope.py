"""A scope for each request: what one sets is not on the events of another."""

from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any, Final

from svc.client import current
from svc.scope import OF_REQUEST

_KEY: Final = "svc.request_scope"


class RequestScope:
    """A copy of the process's scope as it is now."""

    def __init__(self) -> None:
        client = current()
        self._scopes = None if client is None else (client.process_scope, client.process_scope.for_request())

    @contextmanager
    def active(self) -> Iterator[None]:
        """In here the public functions act on this copy, in this thread or task and in tasks that it begins."""
        outer = OF_REQUEST.get()
        OF_REQUEST.set(self._scopes)
        try:
            yield
        finally:
            OF_REQUEST.set(outer)


def scope_of(request: MutableMapping[str, Any]) -> RequestScope:
    """The scope of a WSGI environ or an ASGI scope; a middleware further in finds the one made further out.

    It is kept with the request and not looked for in the context: a server may begin a request in the context of another.
    """
    found = request.get(_KEY)
    if not isinstance(found, RequestScope):
        found = request[_KEY] = RequestScope()
    return found
