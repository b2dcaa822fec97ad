"""Signing in and out (protocol, section 5: an admin password and a session)."""

from aiohttp import web

from dashboard.auth.auth import check_password, form, identify
from dashboard.auth.session import close_session, open_session
from dashboard.dependencies import state_of
from dashboard.http.errors import HttpError
from dashboard.http.paths import SIGN_IN, safe_next
from dashboard.http.wire import redirect
from dashboard.pages.render import page, static
from schemas.errors import WireError


async def ask(request: web.Request) -> web.Response:
    """The form; who is signed in already goes on."""
    place = safe_next(request.query.get("next", "/"))
    if await identify(request) is not None:
        return redirect(place)
    return page(request, "sign_in.html", next=place, wrong="")


async def enter(request: web.Request) -> web.Response:
    """Check the password and open a session."""
    fields = await form(request)
    place = safe_next(fields.get("next", "/"))
    try:
        right = await check_password(request, fields.get("password", ""))
    except HttpError as refused:
        if refused.error is not WireError.RATE_LIMITED:
            raise
        response = page(request, "sign_in.html", 429, next=place, wrong=refused.sentence)
        response.headers.update(refused.headers)
        return response
    if not right:
        return page(request, "sign_in.html", 401, next=place, wrong="This is not the password.")
    open_session(request)
    return redirect(place)


async def leave(request: web.Request) -> web.Response:
    """End the session."""
    close_session(request, state_of(request).signed_out)
    return redirect(SIGN_IN)


async def icon(_request: web.Request) -> web.Response:
    """Browsers ask for this name by themselves."""
    return redirect(static("icon.svg"))


async def robots(_request: web.Request) -> web.Response:
    """Nothing here is for search engines."""
    return web.Response(text="User-agent: *\nDisallow: /\n")
