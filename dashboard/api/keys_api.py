"""The secret keys of programs, of one project or of all."""

from msgspec import Struct

from control.key_edits import KeyView, NewKey, add_key, key_views, revoke_key
from dashboard.api.operation import Call, NoInput, Operation
from dashboard.auth.access import Role
from dashboard.dependencies import State
from schemas.ids import new_secret_key
from schemas.projects import Project, key_hash


class KeyList(Struct, frozen=True):
    """The keys, in order of creation, and after a creation the secret.

    It isn't kept: the answer to a repeated request has none.
    """

    keys: list[KeyView]
    secret: str | None = None


def _listed(state: State, project: Project, secret: str | None = None) -> KeyList:
    return KeyList(key_views(project, state.dependencies.projects.registry.last_used), secret)


async def _list(call: Call[NoInput, NoInput]) -> KeyList:
    return _listed(call.state, call.project())


async def _create(call: Call[NoInput, NewKey]) -> KeyList:
    secret, now_ms = new_secret_key(), call.state.dependencies.now_ms()
    project = await call.edit(lambda old: add_key(old, call.body, secret, call.by, now_ms))
    is_new = key_hash(secret) in call.state.dependencies.projects.registry.keys
    return _listed(call.state, project, secret if is_new else None)


async def _revoke(call: Call[NoInput, NoInput]) -> KeyList:
    key, now_ms = call.path("apiKey"), call.state.dependencies.now_ms()
    return _listed(call.state, await call.edit(lambda old: revoke_key(old, key, now_ms)))


OPERATIONS = tuple(
    operation
    for path, of in (("/api-keys", "all projects"), ("/projects/{project}/api-keys", "a project"))
    for operation in (
        Operation("GET", path, f"The keys of {of}", _list, Role.ADMIN),
        Operation("POST", path, f"Create a key of {of}", _create, Role.ADMIN, status=201),
        Operation("DELETE", f"{path}/{{apiKey}}", f"Revoke a key of {of}", _revoke, Role.ADMIN),
    )
)
