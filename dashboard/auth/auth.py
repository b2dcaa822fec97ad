"""Who is asking: the session's cookie, or HTTP Basic with user `admin` on the API (contract, section 4)."""

import asyncio
import binascii
import logging
import time
from base64 import b64decode
from functools import cache
from typing import Final
from urllib.parse import quote, urlsplit

from aiohttp import web
from aiohttp.typedefs import Handler
from msgspec import Struct

from dashboard.auth.session import CSRF_FIELD, CSRF_HEADER, SignedIn, current, is_csrf
from dashboard.dependencies import address_of, state_of
from dashboard.http.errors import HttpError, rate_limited
from dashboard.http.paths import API, SIGN_IN, is_for_programs, is_open
from dashboard.http.proxies import throttled_as
from dashboard.http.wire import redirect
from schemas.errors import WireError

log = logging.getLogger(__name__)

USER: Final = "admin"
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})


class Identity(Struct, frozen=True):
    """Who asks; `session` is None for HTTP Basic."""

    name: str
    session: SignedIn | None


IDENTITY: Final = web.RequestKey("identity", Identity)


@web.middleware
async def authenticate(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Let through what is open, or who is signed in; refuse changes that another site's page asks for."""
    if request.method not in _SAFE and is_foreign(request):
        raise HttpError(WireError.FORBIDDEN, sentence="this change was asked for by a page of another site")
    if is_open(request.path):
        return await handler(request)
    identity = await identify(request)
    if identity is None:
        return _ask(request)
    if request.method not in _SAFE and identity.session is not None:
        await _check_csrf(request, identity.session)
    request[IDENTITY] = identity
    return await handler(request)


async def identify(request: web.Request) -> Identity | None:
    """The cookie's session, else Basic on the API. Raises HttpError when an address tries too many passwords."""
    state = state_of(request)
    signed = current(request, state.signed_out)
    if signed is not None:
        state.throttle.succeeded(throttled_as(address_of(request)), time.monotonic())
        return Identity(USER, signed)
    given = request.headers.get("Authorization", "")
    if given and request.path.startswith(API):
        user, password = _basic(given)
        if await check_password(request, password if user == USER else ""):
            return Identity(USER, None)
    return None


async def check_password(request: web.Request, password: str) -> bool:
    """Whether it is the admin password; a wrong one counts. Raises HttpError when the address has to wait."""
    state, address = state_of(request), throttled_as(address_of(request))
    verdict = state.throttle.ask(address, time.monotonic())
    if verdict.delay_seconds and not verdict.wait_seconds:
        await asyncio.sleep(verdict.delay_seconds)
        # Others of this address may have failed meanwhile.
        verdict = state.throttle.ask(address, time.monotonic())
    if verdict.wait_seconds:
        state.metrics.throttled_passwords.inc()
        if "X-Forwarded-For" in request.headers and not state.trusted_proxies:
            _tell_of_proxy()
        raise rate_limited(verdict.wait_seconds)
    if state.secrets.is_password(password):
        state.throttle.succeeded(address, time.monotonic())
        return True
    state.throttle.failed(address, password, time.monotonic())
    state.metrics.refused_passwords.inc()
    return False


@cache
def _tell_of_proxy() -> None:
    log.warning(
        "sign-ins are throttled by the address of a proxy: set SVC_DASHBOARD_TRUSTED_PROXIES to throttle by that of the client"
    )


def is_foreign(request: web.Request) -> bool:
    """Whether a browser says that a page of another origin makes this request; programs say nothing."""
    site = request.headers.get("Sec-Fetch-Site")
    if site is not None:
        return site not in {"same-origin", "none"}
    origin = request.headers.get("Origin")
    return origin is not None and urlsplit(origin).netloc != request.host


async def _check_csrf(request: web.Request, signed: SignedIn) -> None:
    given = request.headers.get(CSRF_HEADER, "")
    if not given and not is_for_programs(request.path):
        given = str((await form(request)).get(CSRF_FIELD, ""))
    if not is_csrf(signed, given):
        raise HttpError(
            WireError.FORBIDDEN,
            sentence=f"the form has expired, or the header {CSRF_HEADER} is missing: load the page again",
        )


async def form(request: web.Request) -> dict[str, str]:
    """The fields of a posted form. Raises HttpError for a body that is none."""
    try:
        fields = await request.post()
    except (ValueError, LookupError):
        raise HttpError(WireError.VALIDATION_FAILED, sentence="the form can't be read") from None
    return {name: value for name, value in fields.items() if isinstance(value, str)}


def _ask(request: web.Request) -> web.StreamResponse:
    if is_for_programs(request.path):
        # A browser's own dialog would cover the page when its script finds the session ended.
        by_script = request.headers.get("Sec-Fetch-Mode") in {"cors", "same-origin"}
        headers = {} if by_script else {"WWW-Authenticate": 'Basic realm="svc", charset="UTF-8"'}
        raise HttpError(WireError.UNAUTHORIZED, headers=headers)
    place = request.path_qs if request.method in _SAFE else "/"
    return redirect(SIGN_IN if place == "/" else f"{SIGN_IN}?next={quote(place)}")


def _basic(header: str) -> tuple[str, str]:
    scheme, _, rest = header.partition(" ")
    if scheme.lower() != "basic":
        return "", ""
    try:
        user, _, password = b64decode(rest.strip(), validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        return "", ""
    return user, password
