"""A project, and the registry of all projects in each process (contract, section 3, topic `projects`)."""

import hashlib
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Final, Literal

import msgspec
from msgspec import Struct, field

from schemas.notifications import NotificationRule

DEFAULT_RATE_LIMIT = 5000
"""Requests per minute and token (protocol, section 8)."""
DEFAULT_RETENTION_DAYS = 90
GROUPING_VERSION = "v1"
"""The version of the fingerprint by which this build groups all projects."""
LINK_FIELD: Final = re.compile(r"\{(release|app|version|build|file|line)\}")
"""A field that a link template may name."""
ALL_PROJECTS: Final = 0
"""The number of the record that has the keys of all projects. It is no project: no list has it."""
LAST_USE: Final = b"key/"
"""Before a key's id: the record of its last use, apart, because it is written without a person."""
Scope = Literal["read", "write", "artifacts", "admin"]
_MAX_DAYS = 65_535
"""Of a column of 16 bits."""


class Token(Struct, frozen=True, rename="camel"):
    """A project token. It is public by design (protocol, section 5): client builds contain it.

    `request` is the id of the request that created it (`schemas.idempotency`), so that a repeated request
    creates no second token.
    """

    token: str
    created_at: str
    revoked_at: str | None = None
    request: str = field(default="", name="madeFor")


class KeyFields(Struct, frozen=True, rename="camel", kw_only=True):
    """What people may see of a key."""

    id: str
    name: str
    scopes: tuple[Scope, ...]
    created_at: str
    created_by: str
    expires_at: str | None
    revoked_at: str | None = None


class ApiKey(KeyFields, frozen=True, rename="camel", kw_only=True):
    """A secret key, by which a program uses the read API; only its SHA-256 is kept, in hexadecimal digits."""

    hash: str


class GroupingRule(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A rule that corrects the grouping: its settings apply to events that match `match` (query language).

    `fingerprint` may contain `{{ default }}`; `in_app` marks frames whose file or function matches a glob;
    `discard` drops the event. Rules apply in order; the first that sets a fingerprint decides it.
    """

    name: str
    match: str
    fingerprint: tuple[str, ...] | None = None
    in_app: tuple[str, ...] | None = None
    not_in_app: tuple[str, ...] | None = None
    discard: bool = False
    enabled: bool = True


class OwnerRule(Struct, frozen=True, rename="camel"):
    """Assigns a new issue whose first event fits `match` (query language); the first rule that fits decides."""

    match: str
    assignee: str


class SavedView(Struct, frozen=True, rename="camel"):
    """A named list of a team: query, order and range. `id` is sixteen hexadecimal digits.

    `range` is a duration up to now, such as `7d`, or `START/END`, of which one may be empty.
    """

    id: str
    name: str
    query: str
    sort: str = "lastSeen"
    range: str = "14d"


class Project(Struct, frozen=True, rename="camel"):
    """One value of the topic `projects`, keyed by its id in decimal digits. Times are ISO 8601."""

    id: str
    name: str
    created_at: str
    tokens: tuple[Token, ...] = ()
    keys: tuple[ApiKey, ...] = ()
    rate_limit_per_minute: int = DEFAULT_RATE_LIMIT
    retention_days: int = DEFAULT_RETENTION_DAYS
    payload_retention_days: int | None = None
    lenient_sdks: tuple[str, ...] = ()
    grouping_rules: tuple[GroupingRule, ...] = ()
    owners: tuple[OwnerRule, ...] = ()
    link_template: str = ""
    """The address of a frame's line in the source, with fields in braces (`LINK_FIELD`)."""
    discarded: tuple[str, ...] = ()
    """Fingerprints whose new events are dropped before they are stored or counted."""
    saved_views: tuple[SavedView, ...] = ()
    notification_rules: tuple[NotificationRule, ...] = ()
    grouping_version: str = GROUPING_VERSION
    """The current version when the project was created; a build that doesn't know it groups by its own."""
    requests: tuple[str, ...] = ()
    """Ids of the last changes with an `Idempotency-Key` (`schemas.idempotency`)."""

    @property
    def number(self) -> int:
        """The id in chunks and tables: unsigned, 32 bits."""
        return int(self.id)

    def is_lenient(self, sdk: str) -> bool:
        """Whether the lenient rules apply to events of this SDK (contract, section 2, point 7)."""
        return any(fnmatchcase(sdk, pattern) for pattern in self.lenient_sdks)

    @property
    def stored_days(self) -> tuple[int, int]:
        """Days for which events and their payloads are stored: payloads never longer than events."""
        return self.retention_days, min(
            self.payload_retention_days or self.retention_days, self.retention_days
        )


_NO_KEYS: Final = Project(id=str(ALL_PROJECTS), name="", created_at="")
encode_project = msgspec.json.Encoder().encode
decode_project = msgspec.json.Decoder(Project).decode


class ProjectRegistry:
    """All projects, by id, token and key, updated by `apply`. Not thread-safe: one event loop owns it.

    Tokens and keys are looked up by their SHA-256, so that timing reveals nothing about a guess.
    """

    def __init__(self) -> None:
        self._projects: dict[int, Project] = {}
        self._by_token: dict[bytes, int] = {}
        self._by_revoked: dict[bytes, int] = {}
        self.keys: dict[str, tuple[Project, ApiKey]] = {}
        """Every key by its hash, with the record that has it."""
        self.all_projects = _NO_KEYS
        self.last_used: dict[str, str] = {}
        """The day of each key's last use, by the key's id."""
        self.version = 0

    def apply(self, key: bytes, value: bytes | None) -> None:
        """One record of the topic; a null value removes the project. Raises msgspec.DecodeError for a bad value."""
        if key.startswith(LAST_USE):
            self.last_used[key.removeprefix(LAST_USE).decode()] = msgspec.json.decode(
                value or b'""', type=str
            )
            return
        number = int(key)
        project = decode_project(value) if value else None
        old = self.record(number)
        self._projects.pop(number, None)
        for token in old.tokens if old else ():
            self._by_token.pop(_digest(token.token), None)
            self._by_revoked.pop(_digest(token.token), None)
        for former in old.keys if old else ():
            self.keys.pop(former.hash, None)
        if project is not None:
            self.keys |= {given.hash: (project, given) for given in project.keys}
        if number == ALL_PROJECTS:
            self.all_projects = project or _NO_KEYS
        elif project is not None:
            self._projects[number] = project
            for token in project.tokens:
                known = self._by_token if token.revoked_at is None else self._by_revoked
                known[_digest(token.token)] = number
        self.version += 1

    def by_token(self, token: str) -> Project | None:
        """The project that an unrevoked token belongs to."""
        number = self._by_token.get(_digest(token))
        return None if number is None else self._projects.get(number)

    def by_revoked_token(self, token: str) -> Project | None:
        """The project that a revoked token belonged to."""
        number = self._by_revoked.get(_digest(token))
        return None if number is None else self._projects.get(number)

    def get(self, number: int) -> Project | None:
        return self._projects.get(number)

    def record(self, number: int) -> Project | None:
        """A project, or the record of all projects."""
        return self.all_projects if number == ALL_PROJECTS else self.get(number)

    def __iter__(self) -> Iterator[Project]:
        """Projects in the order of their creation."""
        return iter(sorted(self._projects.values(), key=lambda p: (p.created_at, p.id)))

    def __len__(self) -> int:
        return len(self._projects)


class RegistryRetention:
    """Retention by the registry; events of an unknown project are stored for the default."""

    def __init__(self, registry: ProjectRegistry) -> None:
        self._registry = registry
        self._version = -1
        self._days: dict[int, tuple[int, int]] = {}

    def days(self, project: int) -> tuple[int, int]:
        """Days of the events and of their payloads."""
        if self._version != self._registry.version:
            self._version, self._days = self._registry.version, {}
        known = self._days.get(project)
        if known is None:
            registered = self._registry.get(project)
            days, payloads = registered.stored_days if registered else (DEFAULT_RETENTION_DAYS,) * 2
            known = self._days[project] = min(days, _MAX_DAYS), min(payloads, _MAX_DAYS)
        return known


def key_hash(secret: str) -> str:
    """The hash by which a secret key is kept."""
    return _digest(secret).hex()


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
