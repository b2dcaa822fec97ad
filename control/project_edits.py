"""Edits of a project's record as pure functions, shared by the CLI and the dashboard."""

import hashlib
import re
import secrets
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Final, TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from query.keys import OF_ISSUE, asks_of_issue
from query.parse import parse
from schemas.changes import MAX_ASSIGNEE
from schemas.errors import BadChange, Detail, QueryError
from schemas.idempotency import KEPT, is_repeat
from schemas.ids import new_project_id, new_token
from schemas.projects import (
    DEFAULT_RATE_LIMIT,
    DEFAULT_RETENTION_DAYS,
    LINK_FIELD,
    ApiKey,
    OwnerRule,
    Project,
    SavedView,
    Token,
)
from schemas.read_api import Sort
from schemas.times import iso

R = TypeVar("R", Token, ApiKey)
MAX_NAME: Final = 100
MAX_RATE_LIMIT: Final = 10_000_000
MAX_RETENTION_DAYS: Final = 3650
MAX_PATTERNS: Final = 50
MAX_PATTERN: Final = 100
MAX_TOKENS: Final = 100
MAX_DISCARDED: Final = 1000
MAX_OWNERS: Final = 100
MAX_OWNER_MATCH: Final = 1000
MAX_LINK: Final = 500
MAX_VIEWS: Final = 50
MAX_VIEW_NAME: Final = 60
MAX_VIEW_QUERY: Final = 4000
_NO_ADDRESS: Final = (
    "an address such as https://git.example/{release}/{file}#L{line}, without braces in its host"
)
_UNPRINTABLE: Final = re.compile(r"[\x00-\x1f\x7f\u2028\u2029\ud800-\udfff]")

RateLimit = Annotated[int, Meta(ge=1, le=MAX_RATE_LIMIT, description="requests per minute and token")]
Days = Annotated[int, Meta(ge=1, le=MAX_RETENTION_DAYS, description="days")]
Name = Annotated[str, Meta(min_length=1, max_length=MAX_NAME)]
Pattern = Annotated[str, Meta(min_length=1, max_length=MAX_PATTERN, description="`*` matches anything")]
Patterns = Annotated[tuple[Pattern, ...], Meta(max_length=MAX_PATTERNS)]
ViewName = Annotated[str, Meta(min_length=1, max_length=MAX_VIEW_NAME)]
ViewRange = Annotated[
    str,
    Meta(max_length=100, description="a duration such as `7d`, or `START/END` with one of them optional"),
]
ViewQuery = Annotated[str, Meta(max_length=MAX_VIEW_QUERY, description="query language; must parse")]


class Owner(OwnerRule, frozen=True, rename="camel", forbid_unknown_fields=True):
    """An owner rule as people give it: `match` (query language) sees the first event of an issue."""


LinkTemplate = Annotated[
    str,
    Meta(
        max_length=MAX_LINK,
        description="an address with {release}, {app}, {version}, {build}, {file} or {line}",
    ),
]
Owners = Annotated[tuple[Owner, ...], Meta(max_length=MAX_OWNERS, description="the first that fits decides")]


class ProjectChanges(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Changes to a project; omitted fields stay unchanged."""

    name: Name | UnsetType = UNSET
    rate_limit_per_minute: RateLimit | UnsetType = UNSET
    retention_days: Days | UnsetType = UNSET
    payload_retention_days: Days | UnsetType | None = UNSET
    lenient_sdks: Patterns | UnsetType = UNSET
    owners: Owners | UnsetType = UNSET
    link_template: LinkTemplate | UnsetType = UNSET


def create(
    name: str,
    *,
    rate_limit: int | None = None,
    retention_days: int | None = None,
    lenient_sdks: Iterable[str] = (),
    now_ms: int,
    request: str = "",
) -> Project:
    """A new project with one token. `request` is the name of an idempotent request. Raises BadChange."""
    token = _token(now_ms, request)
    project = Project(
        id=str(new_project_id()),
        name="",
        created_at=iso(now_ms),
        tokens=(token,),
    )
    changes = ProjectChanges(
        name=name,
        rate_limit_per_minute=DEFAULT_RATE_LIMIT if rate_limit is None else rate_limit,
        retention_days=DEFAULT_RETENTION_DAYS if retention_days is None else retention_days,
        lenient_sdks=tuple(lenient_sdks),
    )
    return update(project, changes)


def update(project: Project, changes: ProjectChanges) -> Project:
    """The project with these changes. Raises BadChange with every invalid field."""
    fields = {field: getattr(changes, field) for field in changes.__struct_fields__}
    fields = {field: value for field, value in fields.items() if value is not UNSET}
    if "name" in fields:
        fields["name"] = fields["name"].strip()
    changed = msgspec.structs.replace(project, **fields)
    if details := _violations(changed):
        raise BadChange(details)
    return changed


def apply_once(project: Project, request: str, change: Callable[[Project], Project]) -> Project:
    """The project with a change that its idempotency key applies once; `request` is empty without a key.

    Raises KeyReused if the key was used for another request, and the errors of `change`.
    """
    if is_repeat(request, requests_of(project)):
        return project
    changed = change(project)
    if not request:
        return changed
    return msgspec.structs.replace(changed, requests=(*changed.requests, request)[-KEPT:])


def already_created(projects: Iterable[Project], project: Project) -> Project | None:
    """The project that the same creation request already made, if any. Raises KeyReused."""
    requests = {token.request for token in project.tokens} - {""}
    return next(
        (known for known in projects for request in requests if is_repeat(request, requests_of(known))), None
    )


def add_token(project: Project, now_ms: int, request: str = "") -> Project:
    """The project with one more token. Raises BadChange if it has too many."""
    if len(project.tokens) >= MAX_TOKENS:
        raise BadChange([Detail("tokens", f"a project has at most {MAX_TOKENS} tokens")])
    return msgspec.structs.replace(project, tokens=(*project.tokens, _token(now_ms, request)))


def token_of(project: Project, request: str) -> Token:
    """The token that a request added; the last one without a key."""
    return next(known for known in reversed(project.tokens) if known.request == request)


def revoke_token(project: Project, token: str, now_ms: int) -> Project:
    """The project with a token revoked. Raises BadChange for an unknown token."""
    tokens = revoked(project.tokens, "token", token, now_ms, "not a token of this project")
    return msgspec.structs.replace(project, tokens=tokens)


def revoked(known: tuple[R, ...], field: str, value: str, now_ms: int, unknown: str) -> tuple[R, ...]:
    """Tokens or keys, with the one revoked whose field has the value; a repeat keeps the first time.

    Raises BadChange without one.
    """
    if all(getattr(one, field) != value for one in known):
        raise BadChange([Detail(field, unknown)])
    return tuple(
        msgspec.structs.replace(one, revoked_at=one.revoked_at or iso(now_ms))
        if getattr(one, field) == value
        else one
        for one in known
    )


def discard(project: Project, fingerprints: Iterable[str]) -> Project:
    """The project with new events of these fingerprints dropped. Raises BadChange if there are too many."""
    discarded = tuple(dict.fromkeys((*project.discarded, *fingerprints)))
    if len(discarded) > MAX_DISCARDED:
        raise BadChange(
            [Detail("discarded", f"a project discards at most {MAX_DISCARDED} fingerprints: use a rule")]
        )
    return msgspec.structs.replace(project, discarded=discarded)


def undo_discard(project: Project, fingerprints: Iterable[str]) -> Project:
    """The project with new events of these fingerprints stored again."""
    restored = set(fingerprints)
    discarded = tuple(fingerprint for fingerprint in project.discarded if fingerprint not in restored)
    return msgspec.structs.replace(project, discarded=discarded)


def view_id(request: str) -> str:
    """The id of a new view: derived from the request, random for a request without a key."""
    return hashlib.sha256(request.encode()).hexdigest()[:16] if request else secrets.token_hex(8)


class ViewChanges(Struct, frozen=True, forbid_unknown_fields=True):
    """Changes to a view; omitted fields stay unchanged."""

    name: ViewName | None = None
    query: ViewQuery | None = None
    sort: Sort | None = None
    range: ViewRange | None = None


def add_view(project: Project, view: str, fields: ViewChanges) -> Project:
    """The project with a new saved view under this id; the caller has parsed the query. Raises BadChange."""
    if len(project.saved_views) >= MAX_VIEWS:
        raise BadChange([Detail("name", f"a project has at most {MAX_VIEWS} saved views")])
    added = _changed_view(SavedView(view, "", ""), fields)
    return _with_views(project, (*project.saved_views, added), added)


def change_view(project: Project, view: str, changes: ViewChanges) -> Project:
    """The project with a changed view; unchanged if it doesn't have the view. Raises BadChange."""
    old = next((known for known in project.saved_views if known.id == view), None)
    if old is None:
        return project
    changed = _changed_view(old, changes)
    views = tuple(changed if known.id == view else known for known in project.saved_views)
    return _with_views(project, views, changed)


def _changed_view(view: SavedView, changes: ViewChanges) -> SavedView:
    fields = {name: getattr(changes, name) for name in ViewChanges.__struct_fields__}
    return msgspec.structs.replace(
        view, **{name: value.strip() for name, value in fields.items() if value is not None}
    )


def remove_view(project: Project, view: str) -> Project:
    """The project without a view."""
    return msgspec.structs.replace(
        project, saved_views=tuple(known for known in project.saved_views if known.id != view)
    )


def _with_views(project: Project, views: tuple[SavedView, ...], new: SavedView) -> Project:
    details = checked_text("name", new.name, MAX_VIEW_NAME)
    if any(known.name == new.name and known.id != new.id for known in views):
        details.append(Detail("name", "another view has this name"))
    if len(new.query) > MAX_VIEW_QUERY:
        details.append(Detail("query", f"at most {MAX_VIEW_QUERY} characters"))
    if details:
        raise BadChange(details)
    return msgspec.structs.replace(project, saved_views=views)


def requests_of(project: Project) -> Iterator[str]:
    """The names of remembered requests; a token keeps its own request for as long as it exists."""
    yield from project.requests
    yield from (token.request for token in project.tokens if token.request)


def _token(now_ms: int, request: str) -> Token:
    return Token(token=new_token(now_ms), created_at=iso(now_ms), request=request)


def _violations(project: Project) -> list[Detail]:
    details = checked_text("name", project.name, MAX_NAME)
    details += _between("rateLimitPerMinute", project.rate_limit_per_minute, MAX_RATE_LIMIT)
    details += _between("retentionDays", project.retention_days, MAX_RETENTION_DAYS)
    if project.payload_retention_days is not None:
        details += _between("payloadRetentionDays", project.payload_retention_days, project.retention_days)
    if len(project.lenient_sdks) > MAX_PATTERNS:
        details.append(Detail("lenientSdks", f"at most {MAX_PATTERNS} patterns"))
    for position, pattern in enumerate(project.lenient_sdks):
        details += checked_text(f"lenientSdks[{position}]", pattern, MAX_PATTERN)
    if project.link_template and (wrong := _wrong_link(project.link_template)):
        details.append(Detail("linkTemplate", wrong))
    if len(project.owners) > MAX_OWNERS:
        return [*details, Detail("owners", f"at most {MAX_OWNERS} owners")]
    for position, owner in enumerate(project.owners):
        if wrong := _wrong_match(owner.match):
            details.append(Detail(f"owners[{position}].match", wrong))
        details += checked_text(f"owners[{position}].assignee", owner.assignee, MAX_ASSIGNEE)
    return details


def checked_text(field: str, text: str, most: int) -> list[Detail]:
    """What is wrong with a short text."""
    is_right = 1 <= len(text) <= most and not _UNPRINTABLE.search(text)
    return [] if is_right else [Detail(field, f"must have 1 to {most} characters, no control characters")]


def _wrong_link(template: str) -> str:
    """Why a project can't have this template; empty if it can."""
    if len(template) > MAX_LINK or not template.isprintable() or " " in template:
        return f"at most {MAX_LINK} characters, no spaces or control characters"
    rest = LINK_FIELD.sub("", template)
    if "{" in rest or "}" in rest:
        return "in braces only release, app, version, build, file and line"
    try:
        parts = urlsplit(template)
    except ValueError:
        return _NO_ADDRESS
    is_address = parts.scheme in {"http", "https"} and parts.hostname and "\\" not in template
    return "" if is_address and "{" not in parts.netloc else _NO_ADDRESS


def _wrong_match(match: str) -> str:
    """Why an owner can't have this match; empty if it can."""
    if len(match) > MAX_OWNER_MATCH or _UNPRINTABLE.search(match):
        return f"at most {MAX_OWNER_MATCH:,} characters, no control characters"
    try:
        query = parse(match)
    except QueryError as error:
        return error.message
    return (
        f"an owner is found before the issue is known: {OF_ISSUE} can't be asked"
        if asks_of_issue(query)
        else ""
    )


def _between(field: str, value: int, maximum: int) -> list[Detail]:
    return [] if 1 <= value <= maximum else [Detail(field, f"must be between 1 and {maximum:,}")]
