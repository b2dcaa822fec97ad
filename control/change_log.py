"""The records of who changed what, made of a project's record before and after. Pure."""

import hashlib
import uuid
from typing import Any, Final

from msgspec import convert
from msgspec.structs import replace

from control.project_edits import requests_of
from schemas.change_records import MAX_TEXT, NO_PROJECT, Author, Change, ChangeKind
from schemas.issues import encode_json
from schemas.projects import ApiKey, KeyFields, Project, Token
from schemas.times import DAY_MS, iso

_KINDS: Final[dict[str, ChangeKind]] = {
    "grouping_rules": "rulesChanged",
    "notification_rules": "notificationsChanged",
    "saved_views": "viewsChanged",
    "discarded": "discardChanged",
    "owners": "ownersChanged",
}
"""Kinds by the field that changes; of the others it is `projectChanged`."""
_NAMES: Final = dict(zip(Project.__struct_fields__, Project.__struct_encode_fields__, strict=True))
_NOT_SHOWN: Final = {"id", "created_at", "grouping_version", "requests"}


def change_of(
    kind: ChangeKind, author: Author, now_ms: int, project: str = NO_PROJECT, after: str = ""
) -> Change:
    """A record of something other than a change of a project's record."""
    return Change(uuid.uuid4().hex, project, kind, author.name, author.via, iso(now_ms), after=after)


def changes_between(before: Project | None, after: Project, author: Author, now_ms: int) -> list[Change]:
    """The changes that make one record of a project of another, or a new project.

    A repeated request has equal ids; one of a later day has others, for its project may have forgotten the first.
    """
    old = before or Project(id=after.id, name="", created_at=after.created_at)
    fields: dict[ChangeKind, list[str]] = {}
    for field in _NAMES.keys() - _NOT_SHOWN:
        if getattr(old, field) != getattr(after, field):
            kind = _kind(field, old, after) if before else "projectCreated"
            fields.setdefault(kind, []).append(field)
    request = next(iter({*requests_of(after)} - {*requests_of(old)}), "")
    changes = []
    for kind, named in sorted(fields.items()):
        change = change_of(kind, author, now_ms, after.id, _text(after, old, named))
        if request:
            name = f"{kind}/{request}/{now_ms // DAY_MS}"
            change = replace(change, id=hashlib.sha256(name.encode()).hexdigest()[:32])
        changes.append(replace(change, before=_text(old, after, named) if before else ""))
    return changes


def unconfirmed(change: Change) -> Change:
    """The record that a change may not have been made."""
    named = encode_json({"kind": change.kind, "id": change.id}).decode()
    return replace(change, id=f"{change.id}-unconfirmed", kind="changeUnconfirmed", before="", after=named)


def _kind(field: str, old: Project, new: Project) -> ChangeKind:
    if field == "tokens":
        return "tokenCreated" if len(new.tokens) > len(old.tokens) else "tokenRevoked"
    if field == "keys":
        return "keyCreated" if len(new.keys) > len(old.keys) else "keyRevoked"
    return _KINDS.get(field, "projectChanged")


def _text(project: Project, other: Project, fields: list[str]) -> str:
    shown = {_NAMES[name]: _shown(getattr(project, name), getattr(other, name)) for name in sorted(fields)}
    return encode_json(shown).decode()[:MAX_TEXT]


def _shown(value: Any, other: Any) -> Any:
    """A value as a record shows it: of a list the items that the other lacks, or all if only their order differs."""
    if not isinstance(value, tuple):
        return value
    differing = {*value} ^ {*other}
    return [_item(item) for item in value if item in differing or not differing]


def _item(item: Any) -> Any:
    if isinstance(item, ApiKey):
        return convert(item, KeyFields, from_attributes=True)
    return replace(item, token=f"…{item.token[-4:]}", request="") if isinstance(item, Token) else item
