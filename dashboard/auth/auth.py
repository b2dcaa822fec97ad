"""Authentication: a trusted proxy's headers, the session cookie; on the API a secret key or HTTP Basic."""

import asyncio
import binascii
import logging
import time
from base64 import b64decode
from functools import cache, lru_cache
from typing import Final, Literal
from urllib.parse import quote, urlsplit

from aiohttp import web
from aiohttp.typedefs import Handler
from msgspec import Struct

from control.change_log import change_of
from dashboard.auth.access import EVERYTHING, Access
from dashboard.auth.program_key import bearer_of, program_of
from dashboard.auth.proxy_identity import USER, HeadersRefused, ProxyUser
from dashboard.auth.session import (
    CSRF_FIELD,
    CSRF_HEADER,
    ActiveSession,
    current,
    is_csrf,
    open_session,
)
from dashboard.dependencies import State, address_of, state_of
from dashboard.http.http_errors import HttpError, rate_limited
from dashboard.http.paths import API, SIGN_IN, is_for_programs, is_open
from dashboard.http.proxies import is_from_trusted, throttle_key
from dashboard.http.responses import redirect
from schemas.change_records import Author
from schemas.errors import ProjectsUnavailable, WireError
from schemas.issues import encode_json

log = logging.getLogger(__name__)

SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
Via = Literal["password", "proxy", "key"]
"""The way of a sign-in."""


class Identity(Struct, frozen=True):
    """The author of a request and what they may do; without a name from the sign-in they are `admin`.

    `session` is None for HTTP Basic and keys, and for a proxy's user before the first page. `groups` are the proxy's.
    """

    name: str
    session: ActiveSession | None
    access: Access
    via: Via
    groups: tuple[str, ...] = ()

    @property
    def given_name(self) -> str:
        """The name of the sign-in; empty without one."""
        return "" if self.name == USER else self.name


IDENTITY: Final = web.RequestKey("identity", Identity)


def author_of(request: web.Request) -> Author:
    """The author of a change that the request makes."""
    return Author(request[IDENTITY].name, "api" if request.path.startswith(API) else "page")


@web.middleware
async def authenticate(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Require a sign-in except on public paths, and refuse changes that pages of other sites send."""
    if request.method not in SAFE_METHODS and is_cross_site(request):
        raise HttpError(WireError.FORBIDDEN, sentence="a page of another site sent this change")
    if is_open(request.path):
        return await handler(request)
    identity = await identify(request)
    if identity is None:
        return _require_sign_in(request)
    # A browser sends the proxy's cookie with every request, as it does ours; Basic and keys are no such thing.
    if request.method not in SAFE_METHODS and (identity.session is not None or identity.via == "proxy"):
        await _check_csrf(request, identity.session)
    request[IDENTITY] = identity
    return await handler(request)


async def identify(request: web.Request) -> Identity | None:
    """The user by a proxy's headers, the session cookie or, on the API, a secret key or HTTP Basic.

    Raises HttpError if the headers or the key are refused or the address is throttled.
    """
    state = state_of(request)
    signed_in = _proxy_user(request, state)
    session = current(request, state.revoked_sessions)
    authorization = request.headers.get("Authorization", "") if request.path.startswith(API) else ""
    if secret := bearer_of(authorization):
        name, access = program_of(state.dependencies, secret)
        return Identity(name, None, access, "key")
    if signed_in is not None:
        return await _identity_of(request, signed_in, session, state.roles.access_of(signed_in.groups))
    if not state.settings.dashboard_password_sign_in:
        return None
    if session is not None and session.via == "password":
        state.throttle.succeeded(throttle_key(address_of(request)), time.monotonic())
        return Identity(session.name or USER, session, EVERYTHING, "password")
    if authorization:
        user, password = _basic(authorization)
        if await check_password(request, password if user == USER else ""):
            return Identity(USER, None, EVERYTHING, "password")
    return None


def _proxy_user(request: web.Request, state: State) -> ProxyUser | None:
    is_trusted = is_from_trusted(request.remote or "", state.trusted_proxies)
    try:
        return state.proxy.read(request.headers, is_trusted=is_trusted, is_secret=state.secrets.is_proxy)
    except HeadersRefused as error:
        state.metrics.refused_headers.labels(error.reason).inc()
        _warn_about_headers(str(error), request.remote or "")
        raise HttpError(WireError.FORBIDDEN, sentence=str(error)) from None


async def _identity_of(
    request: web.Request, user: ProxyUser, session: ActiveSession | None, access: Access
) -> Identity:
    """The proxy's user with a session, which a page opens; it only holds the token that changes must carry."""
    if session is None or (session.via, session.name) != ("proxy", user.name):
        is_page = request.method == "GET" and not is_for_programs(request.path)
        session = await start_session(request, user.name, "proxy") if is_page else None
    return Identity(user.name, session, access, "proxy", user.groups)


async def start_session(request: web.Request, name: str, via: Via) -> ActiveSession:
    """Open a session and record it; without Kafka, which must keep no person out, only the log has the record."""
    dependencies, author = state_of(request).dependencies, Author(name or USER, "page")
    way = encode_json({"signIn": via}).decode()
    try:
        await dependencies.projects.record(change_of("signedIn", author, dependencies.now_ms(), after=way))
    except ProjectsUnavailable:
        log.warning("%s signed in by %s", author.name, via, extra={"event": "sign_in_not_recorded"})
    return open_session(request, name, via)


@lru_cache(maxsize=1_000)
def _warn_about_headers(reason: str, address: str) -> None:
    """Once for each address, so that senders can't fill the log."""
    log.warning("refused a sign-in from %s: %s", address, reason, extra={"event": "proxy_headers_refused"})


async def check_password(request: web.Request, password: str) -> bool:
    """Whether this is the admin password; if not, count a failure. Raises HttpError if the address is throttled."""
    state, address = state_of(request), throttle_key(address_of(request))
    decision = state.throttle.check(address, time.monotonic())
    if decision.delay_seconds and not decision.wait_seconds:
        await asyncio.sleep(decision.delay_seconds)
        # Other requests from this address may have failed meanwhile.
        decision = state.throttle.check(address, time.monotonic())
    if decision.wait_seconds:
        state.metrics.throttled_passwords.inc()
        if "X-Forwarded-For" in request.headers and not state.trusted_proxies:
            _warn_about_proxy()
        raise rate_limited(decision.wait_seconds)
    if state.secrets.is_password(password):
        state.throttle.succeeded(address, time.monotonic())
        return True
    state.throttle.failed(address, password, time.monotonic())
    state.metrics.refused_passwords.inc()
    return False


@cache
def _warn_about_proxy() -> None:
    log.warning(
        "sign-ins are throttled by a proxy's address: set SVC_DASHBOARD_TRUSTED_PROXIES",
        extra={"event": "proxy_throttled"},
    )


def is_cross_site(request: web.Request) -> bool:
    """Whether browser headers show a page of another origin as sender; programs send no such headers."""
    site = request.headers.get("Sec-Fetch-Site")
    if site is not None:
        return site not in {"same-origin", "none"}
    origin = request.headers.get("Origin")
    return origin is not None and urlsplit(origin).netloc != request.host


async def _check_csrf(request: web.Request, session: ActiveSession | None) -> None:
    token = request.headers.get(CSRF_HEADER, "")
    if not token and not is_for_programs(request.path):
        token = (await read_form(request)).get(CSRF_FIELD, "")
    if session is None or not is_csrf(session, token):
        raise HttpError(
            WireError.FORBIDDEN,
            sentence=f"the form has expired or the header {CSRF_HEADER} is missing: reload the page",
        )


async def read_form(request: web.Request) -> dict[str, str]:
    """The text fields of a posted form. Raises HttpError if the body isn't a form."""
    try:
        fields = await request.post()
    except (ValueError, LookupError, RuntimeError):
        raise HttpError(WireError.VALIDATION_FAILED, sentence="the form can't be parsed") from None
    return {name: value for name, value in fields.items() if isinstance(value, str)}


def only_by_proxy() -> HttpError:
    """The proxy named no person, and the password is switched off."""
    return HttpError(WireError.UNAUTHORIZED, sentence="sign in at the proxy: it named no person")


def _require_sign_in(request: web.Request) -> web.StreamResponse:
    has_password = state_of(request).settings.dashboard_password_sign_in
    if is_for_programs(request.path):
        # For a page's script the browser must not open its own sign-in dialog when the session has expired.
        by_script = request.headers.get("Sec-Fetch-Mode") in {"cors", "same-origin"}
        is_basic = has_password and not by_script
        headers = {"WWW-Authenticate": 'Basic realm="svc", charset="UTF-8"'} if is_basic else {}
        raise HttpError(WireError.UNAUTHORIZED, headers=headers)
    if not has_password:
        raise only_by_proxy()
    target = request.path_qs if request.method in SAFE_METHODS else "/"
    return redirect(SIGN_IN if target == "/" else f"{SIGN_IN}?next={quote(target)}")


def _basic(header: str) -> tuple[str, str]:
    scheme, _, credentials = header.partition(" ")
    if scheme.lower() != "basic":
        return "", ""
    try:
        user, _, password = b64decode(credentials.strip(), validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        return "", ""
    return user, password
