"""Notices that two processes are one member of a group: they take the name from each other, for ever."""

import logging
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from schemas.health import Part

log = logging.getLogger(__name__)

_CHANGES: Final = 3
"""Ids of one client, the first among them."""
_LOG_SECONDS: Final = 60.0


class MemberName:
    """Watches the ids that the broker gives to one client with a name.

    A client keeps its id, unless its session expires or another client takes its name. So often within one session, it is the name.
    """

    def __init__(
        self, group: str, name: str, session_seconds: float, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._detail = f"another process is in the group {group} with {name} too: give each a name of its own"
        self._session_seconds = session_seconds
        self._now = now
        self._id = ""
        self._logged_at = -_LOG_SECONDS
        self._changed_at: deque[float] = deque(maxlen=_CHANGES)

    def begin(self) -> None:
        """A new client begins: its first id is no change."""
        self._id = ""
        self._changed_at.clear()

    def joined(self, member_id: str) -> None:
        """The client has joined the group under this id. Logs, at most once a minute, that the name isn't its alone."""
        now = self._now()
        if member_id != self._id:
            self._id = member_id
            self._changed_at.append(now)
        if not self.part().ok and now - self._logged_at >= _LOG_SECONDS:
            self._logged_at = now
            log.error("%s", self._detail)

    def part(self) -> Part:
        """Whether the name is this client's alone, for readiness."""
        first = self._changed_at[0] if len(self._changed_at) == _CHANGES else None
        shared = first is not None and self._now() - first < self._session_seconds
        return Part(not shared, self._detail if shared else "")
