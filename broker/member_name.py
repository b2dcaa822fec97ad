"""Notices that two processes share a member name of a group: each takes it from the other, forever."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Final

from broker.client import open_admin
from broker.errors import KafkaError
from schemas.health import Part
from schemas.settings import KafkaSettings

log = logging.getLogger(__name__)

_CHANGES: Final = 3
"""Ids of one client, the first among them."""
_LOG_SECONDS: Final = 60.0
_OWN: Final = 16
_LOOK_SECONDS: Final = 0.3
_UUID: Final = 36

Holders = Callable[[], Awaitable[Mapping[str, str]]]
"""The ids under which the broker knows the name now, each with client and address. Raises KafkaError."""


async def holders(settings: KafkaSettings, group: str, instance: str) -> Mapping[str, str]:
    """The ids of a group's member with this static name, each with client and address. Raises KafkaError."""
    async with open_admin(settings) as admin:
        [answer] = await admin.describe_consumer_groups([group])
    [described] = answer.to_object()["groups"]
    return {
        member["member_id"]: f"{member['client_id']} at {member['client_host'].lstrip('/')}"
        for member in described["members"]
        # Brokers append a UUID to the name.
        if member["member_id"][: -_UUID - 1] == instance
    }


class MemberName:
    """Watches the ids that the broker gives to one client with a name.

    A client keeps its id, unless its session expires or another client takes its name. If the id changes this
    often within one session, another client has the name.
    """

    def __init__(
        self,
        group: str,
        name: str,
        session_seconds: float,
        holders: Holders,
        now: Callable[[], float] | None = None,
    ) -> None:
        self._sentence = f"another process is in the group {group} with {name} too"
        self._session_seconds = session_seconds
        self._holders = holders
        self._now = now or time.monotonic
        self._other = ""
        self._own = deque[str]([""], maxlen=_OWN)
        self._logged_at = -_LOG_SECONDS
        self._changed_at: deque[float] = deque(maxlen=_CHANGES)
        self._search: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """A new client begins: its first id is no change."""
        self._own.append("")
        self._changed_at.clear()

    def joined(self, member_id: str) -> None:
        """The client has joined the group under this id.

        Logs, at most once a minute, that another process has the name too.
        """
        now = self._now()
        if member_id != self._own[-1]:
            self._own.append(member_id)
            self._changed_at.append(now)
        if not self.part().ok and now - self._logged_at >= _LOG_SECONDS:
            self._logged_at = now
            self._search = asyncio.create_task(self._tell())

    def part(self) -> Part:
        """Whether the name is this client's alone, for readiness."""
        first = self._changed_at[0] if len(self._changed_at) == _CHANGES else None
        shared = first is not None and self._now() - first < self._session_seconds
        return Part(not shared, self._detail() if shared else "")

    async def other(self, own: str = "") -> str:
        """A sentence about the process that takes the name within half a session.

        Empty if none does, or the broker doesn't tell. `own` is an id of this client which it may not have
        joined with.
        """
        seen: Mapping[str, str] = {}
        with suppress(KafkaError, OSError, TimeoutError):
            async with asyncio.timeout(self._session_seconds / 2):
                while True:
                    found = await self._holders()
                    # Twice, because the first may be one that this client is about to learn.
                    for member_id in seen.keys() & found.keys() - {own, *self._own}:
                        self._other = found[member_id]
                        return self._detail()
                    seen = found
                    await asyncio.sleep(_LOOK_SECONDS)
        return ""

    async def _tell(self) -> None:
        await self.other()
        log.error("%s", self._detail(), extra={"event": "member_name_shared"})

    def _detail(self) -> str:
        who = f" ({self._other})" if self._other else ""
        return f"{self._sentence}{who}: give each a different name"
