"""The project token of a request (contract, section 2, point 1)."""

from typing import Final

from edge.project_snapshot import ProjectSnapshot
from edge.request_errors import RequestError, unavailable
from schemas.errors import Detail, WireError
from schemas.ids import SECRET_PREFIX, TOKEN_PREFIX, decode_token
from schemas.projects import Project

_MESSAGES: Final = {
    "missing": "required: `Bearer` and the project's token",
    "malformed": f"expected `Bearer` and a token: {TOKEN_PREFIX} and 26 characters of lower-case Crockford base32",
    "secret key": f"this is a secret key of the read API: send events with a project token ({TOKEN_PREFIX})",
    "unknown": "the token has the right form, but is unknown or revoked",
}
"""By reason. Unknown and revoked are one, so that guessing tokens reveals nothing about revoked ones."""


def bearer_token(header: str | None) -> str | None:
    """The token of an Authorization header, or None if there is none. The scheme is case-insensitive (RFC 9110)."""
    if header is None:
        return None
    scheme, _, token = header.partition(" ")
    token = token.strip()
    return token if scheme.lower() == "bearer" and token.startswith(TOKEN_PREFIX) else None


def authenticate(header: str | None, projects: ProjectSnapshot) -> tuple[str, Project]:
    """The token and its project. Raises RequestError: 401, or 503 while the token can't be verified."""
    token = bearer_token(header)
    if token is None:
        given = (header or "").strip()
        raise _unauthorized("secret key" if SECRET_PREFIX in given else "malformed" if given else "missing")
    project = projects.by_token(token)
    if project is not None:
        return token, project
    if decode_token(token) is None:
        raise _unauthorized("malformed")
    if not projects.current:
        # The token may be newer than the snapshot, and a failure of ours is never a 4xx.
        raise unavailable("registry")
    raise _unauthorized("unknown")


def _unauthorized(reason: str) -> RequestError:
    return RequestError(WireError.UNAUTHORIZED, reason, [Detail("Authorization", _MESSAGES[reason])])
