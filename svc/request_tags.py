"""The tags that name a web request: `method`, `route` and `url`, read from a WSGI environ or an ASGI scope.

Nothing else of the request is read: no body, no cookie, and of its headers only `Host`.
"""

import contextlib
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import quote
from wsgiref.util import request_uri

from svc.limits import TEXT_CHARS
from svc.plain import text_of
from svc.urls import scrub

_PATH_SAFE: Final = "/:;=,@+$&!*'()~"


def request_tags(request: Mapping[str, Any]) -> dict[str, str]:
    """The tags of the request. One that is unknown or cannot be read is left out."""
    tags: dict[str, str] = {}
    for name, read in _READERS.items():
        with contextlib.suppress(Exception):
            if (value := read(request)) is not None:
                tags[name] = text_of(value)
    return tags


def _method(request: Mapping[str, Any]) -> Any:
    return request.get("REQUEST_METHOD", request.get("method"))


def _route(request: Mapping[str, Any]) -> Any:
    """The template of the path, such as `/orders/{id}`: of Flask's request, or of Starlette's and FastAPI's route."""
    if "werkzeug.request" in request:
        return request["werkzeug.request"].url_rule.rule
    # The routes of a mounted application don't know where it is mounted.
    mounted_at = ""
    if "app_root_path" in request:
        mounted_at = request["root_path"].removeprefix(request["app_root_path"])
    return mounted_at + _path_of_route(request)


def _path_of_route(scope: Mapping[str, Any]) -> Any:
    """The path of the matched route; empty in a mounted application without routes."""
    route: Any = scope.get("route")
    included = scope.get("fastapi", {}).get("effective_route_context")
    if included is not None and (route is None or route is included.original_route):
        # FastAPI's route of an included router doesn't know the router's prefix.
        return (included.starlette_route or included).path
    if route is None:  # Starlette before 1, and its own routes in FastAPI
        endpoint = scope["endpoint"]
        route = next((r for r in scope["app"].routes if getattr(r, "endpoint", None) is endpoint), None)
    return route.path if hasattr(route, "endpoint") else ""


def _url(request: Mapping[str, Any]) -> str:
    """The URL that the client requested, as far as the server knows it, without its secrets."""
    url = request_uri(dict(request)) if "wsgi.url_scheme" in request else _asgi_url(request)
    return scrub(url[:TEXT_CHARS])


def _asgi_url(scope: Mapping[str, Any]) -> str:
    hosts = [value.decode("latin-1") for name, value in scope.get("headers", ()) if name == b"host"]
    if not hosts and scope.get("server"):
        name, port = scope["server"]
        hosts = [name if port is None else f"{name}:{port}"]
    origin = f"{scope.get('scheme', 'http')}://{hosts[0]}" if hosts else ""
    query = scope.get("query_string", b"").decode("latin-1")
    return origin + quote(scope["path"], safe=_PATH_SAFE) + (f"?{query}" if query else "")


_READERS: Final[dict[str, Callable[[Mapping[str, Any]], Any]]] = {
    "method": _method,
    "route": _route,
    "url": _url,
}
