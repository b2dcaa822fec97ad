"""Sign-in and sign-out (protocol, section 5: an admin password and a session)."""

from aiohttp import web

from dashboard.auth.auth import check_password, identify, read_form
from dashboard.auth.session import close_session, open_session
from dashboard.dependencies import state_of
from dashboard.http.http_errors import HttpError
from dashboard.http.paths import SIGN_IN, safe_next
from dashboard.http.responses import redirect
from dashboard.pages.render import page, static
from schemas.errors import WireError


async def show(request: web.Request) -> web.Response:
    """The form; a signed-in user is redirected."""
    target = safe_next(request.query.get("next", "/"))
    if await identify(request) is not None:
        return redirect(target)
    return page(request, "sign_in.html", next=target, error="")


async def sign_in(request: web.Request) -> web.Response:
    """Check the password and open a session."""
    fields = await read_form(request)
    target = safe_next(fields.get("next", "/"))
    try:
        is_correct = await check_password(request, fields.get("password", ""))
    except HttpError as error:
        if error.error is not WireError.RATE_LIMITED:
            raise
        response = page(request, "sign_in.html", 429, next=target, error=error.sentence)
        response.headers.update(error.headers)
        return response
    if not is_correct:
        return page(request, "sign_in.html", 401, next=target, error="Wrong password.")
    open_session(request)
    return redirect(target)


async def sign_out(request: web.Request) -> web.Response:
    """End the session."""
    close_session(request, state_of(request).revoked_sessions)
    return redirect(SIGN_IN)


async def icon(_request: web.Request) -> web.Response:
    """Browsers request this path on their own."""
    return redirect(static("icon.svg"))


async def robots(_request: web.Request) -> web.Response:
    """Keeps search engines out."""
    return web.Response(text="User-agent: *\nDisallow: /\n")
