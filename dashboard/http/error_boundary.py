"""The boundary: whatever goes wrong below becomes one answer, JSON for programs and a page for people; never a traceback."""

import logging

from aiohttp import web
from aiohttp.typedefs import Handler

from dashboard.dependencies import state_of
from dashboard.http.errors import HttpError, refusal_of
from dashboard.http.paths import is_for_programs
from dashboard.http.wire import error_answer
from dashboard.pages.render import error_page
from schemas.errors import WireError
from storage.errors import DamagedPayload

log = logging.getLogger(__name__)


@web.middleware
async def answer_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer every exception."""
    try:
        return await handler(request)
    except Exception as error:
        refused = refusal_of(error)
        if isinstance(error, DamagedPayload):
            state_of(request).metrics.damaged_payloads.inc()
        if refused is None:
            log.exception("%s %s failed", request.method, request.path)
            refused = HttpError(WireError.INTERNAL)
    if is_for_programs(request.path):
        return error_answer(refused)
    return error_page(request, refused)
