"""Whoever changes something sees it with the next read."""

from typing import Final

from aiohttp import web
from aiohttp.typedefs import Handler

from dashboard.dependencies import state_of

READS: Final = frozenset({"GET", "HEAD", "OPTIONS"})


@web.middleware
async def forget_what_was(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Let no kept answer outlive a change; one that failed may be made still."""
    try:
        return await handler(request)
    finally:
        if request.method not in READS:
            state_of(request).shared.forget()
