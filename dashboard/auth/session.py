"""Sessions: an encrypted cookie that says when someone signed in, and the token that its forms must carry back."""

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from functools import cache
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from aiohttp_session import Session
from aiohttp_session.cookie_storage import EncryptedCookieStorage
from msgspec import Struct

from schemas.settings import DashboardSettings

COOKIE: Final = "svc_session"
CSRF_FIELD: Final = "csrf"
CSRF_HEADER: Final = "X-Csrf-Token"
SIGNED_OUT_LIMIT: Final = 10_000
_SESSION: Final = web.RequestKey("session", Session)
_CONTEXT: Final = b"svc dashboard session v1"


class Secrets:
    """The admin password and the key of the cookies; both stay inside."""

    def __init__(self, settings: DashboardSettings) -> None:
        self._password = _digest(settings.admin_password)
        # The password is always part of the key: changing it ends every session.
        self._key = _derive(settings.session_secret, settings.admin_password)

    def is_password(self, given: str) -> bool:
        """Whether `given` is the password; how long it takes says nothing about how much of it is right."""
        return hmac.compare_digest(self._password, _digest(given))

    def storage(self, settings: DashboardSettings) -> EncryptedCookieStorage:
        """Where aiohttp-session keeps sessions: encrypted, in the cookie itself."""
        return EncryptedCookieStorage(
            self._key,
            cookie_name=COOKIE,
            max_age=settings.session_hours * 3600,
            httponly=True,
            samesite="Lax",
            secure=settings.secure_cookies,
        )


def keeping_sessions(storage: EncryptedCookieStorage, is_https: Callable[[web.Request], bool]) -> Middleware:
    """A middleware that reads the session of a request and writes a changed one; over https the cookie stays on https.

    aiohttp-session's own keeps it under a plain string, which aiohttp 3.14 warns of at each request.
    """

    @web.middleware
    async def keep(request: web.Request, handler: Handler) -> web.StreamResponse:
        session = await _load(storage, request)
        request[_SESSION] = session
        response = await handler(request)
        if session._changed and not response.prepared:
            await storage.save_session(request, response, session)
            if is_https(request) and COOKIE in response.cookies:
                response.cookies[COOKIE]["secure"] = True
        return response

    return keep


async def _load(storage: EncryptedCookieStorage, request: web.Request) -> Session:
    try:
        return await storage.load_session(request)
    except ValueError:
        # A cookie that is no text at all.
        return await storage.new_session()


@cache
def _derive(secret: str, password: str) -> bytes:
    seed = secret.encode() + b"\0" + password.encode()
    return hashlib.scrypt(seed, salt=_CONTEXT, n=2**14, r=8, p=1, dklen=32)


class SignedIn(Struct, frozen=True):
    """A session that holds: its name, and the token that its changes must carry."""

    id: str
    csrf: str


class SignedOut:
    """Sessions that were ended before they expired: the cookie alone would let a copy of it live on.

    Kept in memory: a restart forgets them, and the cookies' own expiry remains.
    """

    def __init__(self) -> None:
        self._ids: dict[str, None] = {}

    def add(self, session: str) -> None:
        """End a session."""
        self._ids[session] = None
        if len(self._ids) > SIGNED_OUT_LIMIT:
            del self._ids[next(iter(self._ids))]

    def __contains__(self, session: str) -> bool:
        return session in self._ids


def open_session(request: web.Request) -> None:
    """Sign in: the cookie goes out with the answer."""
    session = request[_SESSION]
    session.invalidate()
    session["id"] = secrets.token_urlsafe(16)
    session["csrf"] = secrets.token_urlsafe(24)
    session["at"] = int(time.time())


def close_session(request: web.Request, ended: SignedOut) -> None:
    """Sign out: the cookie is deleted and never taken again."""
    signed = current(request, ended)
    if signed is not None:
        ended.add(signed.id)
        request[_SESSION].invalidate()


def current(request: web.Request, ended: SignedOut) -> SignedIn | None:
    """The session of a request; None where there is none, or one that is forged, expired or ended."""
    session = request[_SESSION]
    name, csrf = session.get("id"), session.get("csrf")
    if not isinstance(name, str) or not isinstance(csrf, str) or name in ended:
        return None
    return SignedIn(name, csrf)


def is_csrf(signed: SignedIn, given: str) -> bool:
    """Whether `given` is the session's token."""
    return hmac.compare_digest(_digest(signed.csrf), _digest(given))


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
