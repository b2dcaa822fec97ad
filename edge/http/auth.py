"""Which project a request belongs to: the token alone says it (protocol, section 5)."""

from typing import Final

from edge.http.errors import RequestError, unavailable
from edge.project_snapshot import ProjectSnapshot
from schemas.errors import WireError
from schemas.ids import TOKEN_PREFIX, decode_token
from schemas.projects import Project

_SCHEME: Final = "bearer"


def bearer_token(header: str | None) -> str | None:
    """The token of an Authorization header, or None where it isn't one. The scheme is written in either case (RFC 9110)."""
    if header is None:
        return None
    scheme, _, token = header.partition(" ")
    token = token.strip()
    return token if scheme.lower() == _SCHEME and token.startswith(TOKEN_PREFIX) else None


def authenticate(header: str | None, projects: ProjectSnapshot) -> tuple[str, Project]:
    """The token and its project. Raises Fault: 401, or 503 while it can't be known (contract, section 2, point 1)."""
    token = bearer_token(header)
    if token is None:
        raise RequestError(WireError.UNAUTHORIZED, "malformed")
    project = projects.by_token(token)
    if project is not None:
        return token, project
    if decode_token(token) is None:
        raise RequestError(WireError.UNAUTHORIZED, "malformed")
    if not projects.current:
        # The token may be newer than the snapshot: trouble of our own is never a 4xx.
        raise unavailable("registry")
    raise RequestError(WireError.UNAUTHORIZED, "unknown")
