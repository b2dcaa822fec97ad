"""Security and cache headers of every response: no third-party content, no framing, no MIME sniffing, no versions."""

from typing import Final

from aiohttp import web
from aiohttp.typedefs import Handler

# Not `no-referrer`: with it browsers send `Origin: null` with our own forms.
SECURITY: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "same-origin",
    "Server": "svc",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_YEAR_SECONDS: Final = 31_536_000


@web.middleware
async def add_headers(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Add the headers to each response."""
    response = await handler(request)
    response.headers.update(SECURITY)
    response.headers.setdefault("Cache-Control", _cache_control(request, response))
    return response


def _cache_control(request: web.Request, response: web.StreamResponse) -> str:
    """A year for static files with a content hash in their URL; responses with data are never stored."""
    if request.path.startswith("/static/") and response.status in {200, 206, 304}:
        return f"public, max-age={_YEAR_SECONDS}, immutable" if "v" in request.query else "no-cache"
    return "no-store"
