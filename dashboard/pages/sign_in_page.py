"""Sign-in and sign-out (protocol, section 5: an admin password and a session)."""

from typing import Final

from aiohttp import web

from dashboard.auth.auth import IDENTITY, check_password, identify, only_by_proxy, read_form, start_session
from dashboard.auth.session import close_session
from dashboard.dependencies import state_of
from dashboard.http.http_errors import HttpError
from dashboard.http.paths import SIGN_IN, safe_next
from dashboard.http.responses import redirect
from dashboard.pages.render import page, static
from schemas.errors import WireError
from schemas.issues import SYSTEM

MAX_NAME: Final = 60


async def show_sign_in(request: web.Request) -> web.Response:
    """The form; a signed-in user is redirected."""
    target = safe_next(request.query.get("next", "/"))
    if await identify(request) is not None:
        return redirect(target)
    _require_password_sign_in(request)
    return _form(request, target)


async def sign_in(request: web.Request) -> web.Response:
    """Check the password and open a session.

    The name labels a person's changes and issues. It is not verified: with the password, any name but
    `system` is accepted.
    """
    _require_password_sign_in(request)
    fields = await read_form(request)
    target, name = safe_next(fields.get("next", "/")), _name(fields.get("name", ""))
    try:
        is_correct = await check_password(request, fields.get("password", ""))
    except HttpError as error:
        if error.error is not WireError.RATE_LIMITED:
            raise
        response = _form(request, target, 429, error.sentence, name)
        response.headers.update(error.headers)
        return response
    if not is_correct:
        return _form(request, target, 401, "Wrong password.", name)
    if name.casefold() == SYSTEM:
        return _form(
            request, target, 400, "This name is that of changes which events cause: choose another.", name
        )
    await start_session(request, name, "password")
    return redirect(target)


def _require_password_sign_in(request: web.Request) -> None:
    if not state_of(request).settings.dashboard_password_sign_in:
        raise only_by_proxy()


def _name(text: str) -> str:
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())[:MAX_NAME]


def _form(
    request: web.Request, target: str, status: int = 200, error: str = "", name: str = ""
) -> web.Response:
    return page(request, "sign_in.html", status, next=target, error=error, name=name, longest=MAX_NAME)


async def sign_out(request: web.Request) -> web.Response:
    """End the session, and lead a proxy's user to the sign-out there."""
    state, address = state_of(request), state_of(request).settings.dashboard_proxy_sign_out_url
    close_session(request, state.revoked_sessions)
    if request[IDENTITY].via != "proxy" or not address:
        return redirect(SIGN_IN)
    # Not a redirect: browsers apply `form-action` to all that follow a form, and the proxy leads on to others.
    response = page(request, "signed_out.html", address=address)
    response.headers["Refresh"] = f"0; url={address}"
    return response


async def icon(_request: web.Request) -> web.Response:
    """Browsers request this path on their own."""
    return redirect(static("icon.svg"))


async def robots(_request: web.Request) -> web.Response:
    """Keeps search engines out."""
    return web.Response(text="User-agent: *\nDisallow: /\n")
