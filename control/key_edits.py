"""Edits of a record's secret keys as pure functions, shared by the CLI and the dashboard."""

import secrets
from collections.abc import Mapping
from typing import Annotated, Final, get_args

from msgspec import Meta, Struct, convert
from msgspec.structs import replace

from control.project_edits import MAX_NAME, MAX_RETENTION_DAYS, Days, Name, checked_text, revoked
from schemas.errors import BadChange, Detail
from schemas.projects import ApiKey, KeyFields, Project, Scope, key_hash
from schemas.times import DAY_MS, iso

MAX_KEYS: Final = 100
SCOPES: Final[tuple[Scope, ...]] = get_args(Scope)


class NewKey(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A key as people ask for it; without a number of days it doesn't expire."""

    name: Name
    scopes: Annotated[tuple[Scope, ...], Meta(min_length=1)]
    expires_in_days: Days | None = None


class KeyView(KeyFields, frozen=True, rename="camel", kw_only=True):
    """A key without its secret; `lastUsed` is a day."""

    last_used: str | None = None


def key_views(project: Project, last_used: Mapping[str, str]) -> list[KeyView]:
    """The keys of a record, in order of creation; `last_used` is by their ids."""
    views = (convert(key, KeyView, from_attributes=True) for key in project.keys)
    return [replace(view, last_used=last_used.get(view.id)) for view in views]


def add_key(project: Project, new: NewKey, secret: str, by: str, now_ms: int) -> Project:
    """The record with one more key, which has the secret's hash. Raises BadChange."""
    name, days = new.name.strip(), new.expires_in_days
    details = checked_text("name", name, MAX_NAME)
    if any(key.name == name and key.revoked_at is None for key in project.keys):
        details.append(Detail("name", "another key has this name: revoke it first"))
    if len(project.keys) >= MAX_KEYS:
        details.append(Detail("name", f"at most {MAX_KEYS} keys, with the revoked ones"))
    if not new.scopes:
        details.append(Detail("scopes", "choose at least one"))
    if days is not None and not 1 <= days <= MAX_RETENTION_DAYS:
        details.append(Detail("expiresInDays", f"must be between 1 and {MAX_RETENTION_DAYS:,}"))
    if details:
        raise BadChange(details)
    key = ApiKey(
        id=secrets.token_hex(8),
        name=name,
        hash=key_hash(secret),
        scopes=tuple(scope for scope in SCOPES if scope in new.scopes),
        created_at=iso(now_ms),
        created_by=by,
        expires_at=None if days is None else iso(now_ms + days * DAY_MS),
    )
    return replace(project, keys=(*project.keys, key))


def revoke_key(project: Project, key: str, now_ms: int) -> Project:
    """The record with a key revoked, by its id. Raises BadChange for an unknown key."""
    return replace(project, keys=revoked(project.keys, "id", key, now_ms, "there is no key with this id"))
