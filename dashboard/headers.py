"""Headers that every answer carries: nothing foreign is loaded, framed or guessed."""

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
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


@web.middleware
async def secure(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Add the headers. What holds data is not kept by caches."""
    response = await handler(request)
    response.headers.update(SECURITY)
    if not request.path.startswith("/static/"):
        response.headers.setdefault("Cache-Control", "no-store")
    return response
