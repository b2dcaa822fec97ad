"""The scope: user, tags and breadcrumbs that every capture snapshots (protocol, 2.11)."""

import threading
from collections import Counter, deque
from collections.abc import Mapping
from contextvars import ContextVar
from itertools import islice
from typing import Any, Final, NamedTuple

from svc.breadcrumbs import Breadcrumb
from svc.limits import BREADCRUMBS, TAG_KEY_CHARS, TAG_KEYS, TAG_VALUE_CHARS
from svc.links import link_hashes
from svc.notices import Notices
from svc.own_tags import RequestTags
from svc.plain import clip, text_of, type_name

_LIMITS = {
    "clippedTags": f"{TAG_KEY_CHARS} chars a key, {TAG_VALUE_CHARS} a value",
    "droppedTags": f"{TAG_KEYS} keys an event",
}
_MAX_FIELDS = 1_000
"""Fields read from a mapping, which may be endless."""
_USER_FIELDS = frozenset({"id", "name", "anonymous", "linkBy", "link_by"})


class Snapshot(NamedTuple):
    """An immutable view of the scope. The scope replaces its parts and never mutates them, so no copy is needed."""

    user: dict[str, Any] | None
    tags: dict[str, str]
    crumbs: tuple[Breadcrumb, ...]


class EventScope:
    """A mutable scope: the process's, shared by all threads and tasks, or a request's copy.

    Tags and user are replaced as a whole under the lock and read without it. The lock is reentrant because a finaliser
    or signal handler may call in at any point.
    """

    def __init__(
        self, notices: Notices, counts: Counter[str], identity: bool, capacity: int = BREADCRUMBS
    ) -> None:
        self._lock = threading.RLock()
        self._notices = notices
        self._counts = counts
        self._identity = identity
        self._user: dict[str, Any] | None = None
        self._tags: dict[str, str] = {}
        self._crumbs: deque[Breadcrumb] = deque(maxlen=capacity)

    def for_request(self) -> "EventScope":
        """An independent copy."""
        copy = EventScope(self._notices, self._counts, self._identity, self._crumbs.maxlen or BREADCRUMBS)
        copy._user, copy._tags, crumbs = self.snapshot()
        copy._crumbs.extend(crumbs)
        return copy

    def set_user(self, user: Mapping[str, Any] | None) -> None:
        """Set the user; None clears. Only hashes of `linkBy` are stored, and only with `identity`."""
        self._user = None if user is None else self.user_of(user)

    def user_of(self, user: Mapping[str, Any]) -> dict[str, Any]:
        """The user in its wire form: `id`, `name`, `anonymous`, `linkHashes`. Other fields are ignored.

        Raises TypeError for a value that is no mapping, and any error that the mapping raises.
        """
        if not hasattr(user, "get"):
            raise TypeError(f"a user is a mapping such as {{'id': '42'}}, not {type_name(user)}")
        wire: dict[str, Any] = {}
        for key in ("id", "name"):
            if user.get(key) is not None:
                wire[key] = text_of(user[key])
        if user.get("anonymous") is not None:
            wire["anonymous"] = bool(user["anonymous"])
        link_by = user.get("linkBy", user.get("link_by"))
        if isinstance(link_by, Mapping) and self._identity and (hashes := link_hashes(link_by)):
            wire["linkHashes"] = hashes
        if any(field not in _USER_FIELDS for field in islice(user, _MAX_FIELDS)):
            self._notices.once(
                "user", "set_user takes id, name, anonymous and linkBy; other fields are left out"
            )
        return wire

    def set_tags(self, tags: Mapping[str, object]) -> None:
        """Merge tags into the scope, cut to the limits of section 8; None removes a tag."""
        with self._lock:
            self._tags, cuts = _merged(self._tags, tags)
        self._report(cuts)

    def merged(self, tags: Mapping[str, object]) -> dict[str, str]:
        """The scope's tags, overridden by these, within the limits."""
        merged, cuts = _merged(self._tags, tags)
        self._report(cuts)
        return merged

    def _report(self, cuts: Counter[str]) -> None:
        """Count the cuts and warn: outside the lock, because logging takes locks too."""
        for what, tags in cuts.items():
            self._counts[what] += tags
            self._notices.once(what, "tags are cut to the limits of the server: %s", _LIMITS[what])

    def clear_tags(self) -> None:
        self._tags = {}

    def add_crumb(self, crumb: Breadcrumb) -> None:
        """Append to the ring; a full ring drops its oldest."""
        with self._lock:
            self._crumbs.append(crumb)

    def clear_crumbs(self) -> None:
        with self._lock:
            self._crumbs.clear()

    def snapshot(self) -> Snapshot:
        with self._lock:
            while True:
                try:
                    return Snapshot(self._user, self._tags, tuple(self._crumbs))
                except RuntimeError:  # a finaliser of this thread added a breadcrumb meanwhile
                    continue

    def reset_lock(self) -> None:
        """In a forked child: replace the lock, which a thread of the parent may have held."""
        self._lock = threading.RLock()


class ActiveScope(NamedTuple):
    """The scope of a request or task: the process's scope, the copy of it, and the reader of its tags."""

    process: EventScope
    request: EventScope
    tags: RequestTags


REQUEST_SCOPE: Final[ContextVar[ActiveScope | None]] = ContextVar("svc_scope", default=None)


def _merged(tags: Mapping[str, str], more: Mapping[str, object]) -> tuple[dict[str, str], Counter[str]]:
    """Tags overridden by `more`, and how many of these were clipped and dropped."""
    if not hasattr(more, "items"):
        raise TypeError(f"tags are a mapping such as {{'plan': 'pro'}}, not {type_name(more)}")
    merged, cuts = dict(tags), Counter[str]()
    for key, value in islice(more.items(), _MAX_FIELDS):
        name = key if type(key) is str else text_of(key)
        text = value if type(value) is str else text_of(value)
        if len(name) > TAG_KEY_CHARS or len(text) > TAG_VALUE_CHARS:
            cuts["clippedTags"] += 1
            name, text = clip(name, TAG_KEY_CHARS), clip(text, TAG_VALUE_CHARS)
        if value is None:
            merged.pop(name, None)
        elif name in merged or len(merged) < TAG_KEYS:
            merged[name] = text
        else:
            cuts["droppedTags"] += 1
    return merged, cuts
