"""Scopes, exceptions and options of every kind, and the events that the library makes of them."""

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from svc.breadcrumbs import CLIENT_TYPES
from svc.client import Client
from svc.notices import Notices
from svc.options import resolve


class Kept:
    """Replaces the transport and keeps submitted events."""

    def __init__(self) -> None:
        self.events: list[bytes] = []

    def submit(self, event_id: str, event: Any) -> bool:
        made = event() if callable(event) else event
        assert made is not None, event_id
        self.events.append(made)
        return True


def client(**options: Any) -> tuple[Client, Kept]:
    """A client with nothing behind it."""
    transport = Kept()
    resolved, _ = resolve({"token": "svc_pk_x", "release": "shop@1.4.2+318", **options}, {})
    return Client(resolved, Notices(), transport), transport  # type: ignore[arg-type]


json_like = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary()),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(), inner, max_size=4)),
    max_leaves=15,
)
data_keys = st.sampled_from(
    ["from", "to", "method", "url", "status", "durationMs", "level", "message", "action", "target"]
)
crumbs = st.fixed_dictionaries(
    {},
    optional={
        "message": json_like,
        "type": st.one_of(st.sampled_from(sorted(CLIENT_TYPES)), st.text()),
        "level": json_like,
        "data": st.one_of(json_like, st.dictionaries(data_keys, json_like)),
    },
)
tags = st.dictionaries(st.one_of(st.text(), st.integers()), json_like, max_size=60)
users = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("id", "name", "anonymous", "email"), json_like) | {"linkBy": tags}
)
any_text = st.text(st.characters(exclude_categories=[]))
"""Lone surrogates among it."""


def fail(depth: int, message: str, group: bool) -> None:
    """Raise an error with `depth` causes."""
    if depth:
        try:
            fail(depth - 1, message, group)
        except Exception as error:
            if group:
                raise ExceptionGroup(message, [error, OSError(message)]) from error
            raise ValueError(message) from error
    root = KeyError(message)
    root.add_note(message)
    raise root


@dataclass(frozen=True)
class Situation:
    """The state of a program when it captured an error."""

    crumbs: list[Any]
    tags: dict[Any, Any]
    user: dict[str, Any] | None
    message: str
    depth: int
    group: bool
    fingerprint: list[Any] | None
    environment: str
    release: object

    def event(self) -> tuple[str | None, bytes]:
        """The id that the capture returned, and the event."""
        reporter, transport = client(identity=True, environment=self.environment, release=self.release)
        for crumb in self.crumbs:
            reporter.add_breadcrumb(crumb)
        reporter.scope.set_tags(self.tags)
        reporter.scope.set_user(self.user)
        try:
            fail(self.depth, self.message, self.group)
        except Exception as error:  # noqa: BLE001  # any error of `fail`
            event_id = reporter.capture(error, fingerprint=self.fingerprint)
        return event_id, transport.events[0]


situations = st.builds(
    Situation,
    crumbs=st.lists(crumbs, max_size=8),
    tags=tags,
    user=st.one_of(st.none(), users),
    message=any_text,
    depth=st.integers(0, 14),
    group=st.booleans(),
    fingerprint=st.one_of(st.none(), st.lists(json_like, max_size=3)),
    environment=any_text,
    release=st.one_of(st.none(), any_text, st.just("shop@1.4.2+318")),
)
