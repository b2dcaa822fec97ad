"""The secret keys of programs, which the API takes as `Authorization: Bearer`."""

from typing import Final

from dashboard.auth.access import EVERYONE, Access, Role
from dashboard.auth.proxy_identity import KEY_NAME
from dashboard.dependencies import Dependencies
from dashboard.http.http_errors import HttpError, unavailable
from schemas.errors import Detail, WireError
from schemas.ids import SECRET_PREFIX, TOKEN_PREFIX
from schemas.projects import ALL_PROJECTS, Scope, key_hash
from schemas.times import iso

ROLES: Final[dict[Scope, Role]] = {
    "read": Role.VIEWER,
    "write": Role.MEMBER,
    "artifacts": Role.NONE,
    "admin": Role.ADMIN,
}
"""The role that a scope gives."""


def bearer_of(header: str) -> str:
    """The key, or the token, in the header `Authorization`; empty without one. Tokens of others are a proxy's."""
    scheme, _, given = header.partition(" ")
    is_ours = given.strip().startswith((SECRET_PREFIX, TOKEN_PREFIX))
    return given.strip() if is_ours and scheme.lower() == "bearer" else ""


def program_of(dependencies: Dependencies, secret: str) -> tuple[str, Access]:
    """The name and the rights of the program that has the key. Raises HttpError."""
    projects, now = dependencies.projects, iso(dependencies.now_ms())
    if secret.startswith(TOKEN_PREFIX):
        raise _refused(
            f"this is a project token, which only sends events: the API takes a key ({SECRET_PREFIX})"
        )
    if not projects.loaded:
        raise unavailable("projects are not loaded yet")
    project, key = projects.registry.keys.get(key_hash(secret), (None, None))
    if project is None or key is None:
        raise _refused("this key is unknown")
    if key.revoked_at is not None:
        raise _refused("this key is revoked")
    if key.expires_at is not None and key.expires_at <= now:
        raise _refused("this key has expired")
    projects.note_use(key, now[:10])
    role = max(ROLES[scope] for scope in key.scopes)
    everywhere = project.number == ALL_PROJECTS
    uploads = frozenset({EVERYONE if everywhere else project.id} if "artifacts" in key.scopes else ())
    access = Access(role, uploads=uploads) if everywhere else Access(ids={project.id: role}, uploads=uploads)
    return f"{KEY_NAME}{key.name}", access


def _refused(sentence: str) -> HttpError:
    challenge = {"WWW-Authenticate": 'Bearer realm="svc"'}
    return HttpError(WireError.UNAUTHORIZED, [Detail("Authorization", sentence)], challenge, sentence)
