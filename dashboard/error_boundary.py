"""Turns every exception into a response: JSON for programs, a page for people, never a traceback."""

import logging

from aiohttp import web
from aiohttp.typedefs import Handler

from dashboard.dependencies import state_of
from dashboard.http.http_errors import HttpError, http_error_of
from dashboard.http.paths import is_for_programs
from dashboard.http.responses import error_response
from dashboard.pages.render import error_page
from schemas.errors import WireError
from storage.errors import DamagedPayload
from storage.read.execute import track_partial

log = logging.getLogger(__name__)


@web.middleware
async def answer_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer every exception."""
    try:
        with track_partial():
            return await handler(request)
    except Exception as exception:
        error = http_error_of(exception)
        if isinstance(exception, DamagedPayload):
            state_of(request).metrics.damaged_payloads.inc()
        if error is None:
            log.exception(
                "%s %s failed", request.method, request.path, extra={"event": "page_request_failed"}
            )
            error = HttpError(WireError.INTERNAL)
    return error_response(error) if is_for_programs(request.path) else error_page(request, error)
