"""Sessions: an encrypted cookie with the time of sign-in and the CSRF token that changes must carry."""

import hashlib
import hmac
import secrets
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from functools import cache
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from aiohttp_session import Session
from aiohttp_session.cookie_storage import EncryptedCookieStorage
from msgspec import Struct, ValidationError, convert
from msgspec.structs import asdict

from schemas.settings import DashboardSettings

COOKIE: Final = "svc_session"
CSRF_FIELD: Final = "csrf"
CSRF_HEADER: Final = "X-Csrf-Token"
MAX_REVOKED: Final = 10_000
_SESSION: Final = web.RequestKey("session", Session)
_CONTEXT: Final = b"svc dashboard session v1"


class Secrets:
    """The admin password, the proxy's secret and the key of the cookies, none of which leaves this class."""

    def __init__(self, settings: DashboardSettings) -> None:
        self._password = _digest(settings.admin_password)
        self._proxy = _digest(settings.dashboard_proxy_secret)
        # The key is derived from the password too: changing the password ends every session.
        self._key = _derive(settings.session_secret, settings.admin_password)

    def is_password(self, candidate: str) -> bool:
        """Whether this is the password, compared in constant time."""
        return hmac.compare_digest(self._password, _digest(candidate))

    def is_proxy(self, candidate: str) -> bool:
        """Whether this is the proxy's secret, compared in constant time."""
        return hmac.compare_digest(self._proxy, _digest(candidate))

    def storage(self, settings: DashboardSettings) -> EncryptedCookieStorage:
        """The session storage of aiohttp-session: encrypted, in the cookie itself."""
        return EncryptedCookieStorage(
            self._key,
            cookie_name=COOKIE,
            max_age=settings.session_hours * 3600,
            httponly=True,
            samesite="Lax",
            secure=settings.secure_cookies,
        )


def session_middleware(
    storage: EncryptedCookieStorage, is_https: Callable[[web.Request], bool]
) -> Middleware:
    """A middleware that loads and saves sessions; over https the cookie is marked secure.

    aiohttp-session's own middleware uses a plain string as request key, for which aiohttp 3.14 warns on each
    request.
    """

    @web.middleware
    async def load_and_save(request: web.Request, handler: Handler) -> web.StreamResponse:
        session = await _load(storage, request)
        request[_SESSION] = session
        response = await handler(request)
        if session._changed and not response.prepared:
            await storage.save_session(request, response, session)
            if is_https(request) and COOKIE in response.cookies:
                response.cookies[COOKIE]["secure"] = True
        return response

    return load_and_save


async def _load(storage: EncryptedCookieStorage, request: web.Request) -> Session:
    try:
        return await storage.load_session(request)
    except ValueError:
        # The cookie is not valid text.
        return await storage.new_session()


@cache
def _derive(secret: str, password: str) -> bytes:
    seed = secret.encode() + b"\0" + password.encode()
    return hashlib.scrypt(seed, salt=_CONTEXT, n=2**14, r=8, p=1, dklen=32)


class ActiveSession(Struct, frozen=True):
    """A valid session, its CSRF token, the name that was given at the sign-in, or an empty one, and the way in."""

    id: str
    csrf: str
    name: str
    via: str


class RevokedSessions:
    """Sessions that were signed out before they expired, so that a copied cookie stops working.

    They are kept in memory only: after a restart a copied cookie works again until it expires.
    """

    def __init__(self) -> None:
        self._ids: dict[str, None] = {}

    def revoke(self, session: str) -> None:
        self._ids[session] = None
        if len(self._ids) > MAX_REVOKED:
            del self._ids[next(iter(self._ids))]

    def __contains__(self, session: str) -> bool:
        return session in self._ids


def open_session(request: web.Request, name: str, via: str) -> ActiveSession:
    """Sign in; the response carries the cookie, which holds the person's name and the way in, but no rights."""
    session = request[_SESSION]
    session.invalidate()
    opened = ActiveSession(secrets.token_urlsafe(16), secrets.token_urlsafe(24), name, via)
    session.update(asdict(opened) | {"at": int(time.time())})
    return opened


def close_session(request: web.Request, revoked: RevokedSessions) -> None:
    """Sign out: delete the cookie and revoke its session."""
    session = current(request, revoked)
    if session is not None:
        revoked.revoke(session.id)
        request[_SESSION].invalidate()


def current(request: web.Request, revoked: RevokedSessions) -> ActiveSession | None:
    """The session of a request; None if it is missing, forged, expired or revoked."""
    session = request[_SESSION]
    try:
        active = convert(dict(session), ActiveSession)
    except ValidationError:
        return None
    return None if active.id in revoked else active


def masked_csrf(session: ActiveSession) -> str:
    """The session's CSRF token as a page has it, masked with other characters each time.

    So the size of compressed pages says nothing of it (BREACH).
    """
    token = session.csrf.encode()
    pad = secrets.token_bytes(len(token))
    return urlsafe_b64encode(pad + bytes(a ^ b for a, b in zip(pad, token, strict=True))).decode()


def _unmasked(text: str) -> str:
    try:
        both = urlsafe_b64decode(text)
    except ValueError:
        return ""
    pad, masked = both[: len(both) // 2], both[len(both) // 2 :]
    return bytes(a ^ b for a, b in zip(pad, masked, strict=False)).decode(errors="replace")


def is_csrf(session: ActiveSession, token: str) -> bool:
    """Whether this is the session's CSRF token."""
    return hmac.compare_digest(_digest(session.csrf), _digest(_unmasked(token)))


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
