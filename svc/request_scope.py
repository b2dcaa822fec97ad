"""A separate scope for each request."""

from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any, Final

from svc.client import current
from svc.own_tags import RequestTags
from svc.scope import REQUEST_SCOPE, ActiveScope

_KEY: Final = "svc.request_scope"


class RequestScope:
    """A copy of the process's current scope."""

    def __init__(self) -> None:
        client = current()
        self._scopes = None if client is None else (client.process_scope, client.process_scope.for_request())

    @contextmanager
    def active(self, tags: RequestTags) -> Iterator[None]:
        """Make the public functions act on this copy, in this thread or task and in tasks started from it.

        `tags` returns the tags of the request for each event captured meanwhile.
        """
        outer = REQUEST_SCOPE.get()
        REQUEST_SCOPE.set(None if self._scopes is None else ActiveScope(*self._scopes, tags))
        try:
            yield
        finally:
            REQUEST_SCOPE.set(outer)


def scope_of(request: MutableMapping[str, Any]) -> RequestScope:
    """The scope of a request (WSGI environ or ASGI scope), shared by nested middlewares.

    It is stored in the request, not in a context variable: a server may start a request in another one's context.
    """
    scope = request.get(_KEY)
    if not isinstance(scope, RequestScope):
        scope = request[_KEY] = RequestScope()
    return scope
