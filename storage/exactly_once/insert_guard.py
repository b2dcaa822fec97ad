"""Checks before each try of a block's insert: the plan is ours, no pause is in force, and the token holds."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from math import inf
from typing import Any, Final, Protocol, TypeVar

from storage.client import Client
from storage.exactly_once.insert_pauses import in_force
from storage.exactly_once.plan import BlockPlan
from storage.exactly_once.server_state import server_state
from storage.exactly_once.tokens import is_reliable
from storage.replicas import begin_session

log = logging.getLogger(__name__)
T = TypeVar("T")

_PAUSED_SECONDS: Final = 0.1
_INSERT_SECONDS: Final = 2
"""How long an insert may take from its checks to the server: less than Kafka takes to give the partition to
another writer."""


class Statements(Protocol):
    """Runs statements on the server that takes the inserts."""

    async def run(self, work: Callable[[Client], T]) -> T:
        """Return what `work` returns, once the server answers."""


class TokenUnreliable(Exception):
    """The token may no longer prevent a second insert of the block."""


class Renewer:
    """Records a plan, and again once the plan is old.

    A process that was frozen detects here that it was replaced.
    """

    fresh_seconds: Final = 5.0

    def __init__(self, plan: BlockPlan, record: Callable[[], Awaitable[None]]) -> None:
        self.plan = plan
        self._record = record
        self._at = -inf

    async def __call__(self, *, always: bool = False) -> None:
        """Await it before each insert. Raises CommitFailedError."""
        # From before it is recorded: the process may be frozen before it hears that it was.
        now = time.monotonic()
        if always or now - self._at > self.fresh_seconds:
            await self._record()
            self._at = now


class InsertGuard:
    """Checks before each try of an insert: no pause is in force, and the plan is ours.

    Before a repeat it also checks that the token can still be relied on. The server takes the insert for a
    few seconds only: others may complete the block while this process is frozen.
    """

    def __init__(self, server: Statements, renew: Renewer, *, repeats: bool) -> None:
        self._server = server
        self._renew = renew
        self._repeats = repeats

    async def __call__(self) -> Mapping[str, Any]:
        """Returns settings of the insert. Raises TokenUnreliable, and CommitFailedError like `Renewer`."""
        # Before what is checked below, so that nothing of it is older than the session.
        session = await self._begin_session()
        waited = await self._wait_for_pauses()
        if waited:
            session = await self._begin_session()
        await self._renew(always=waited)
        if self._repeats and not is_reliable(self._renew.plan.mark, await self._server.run(server_state)):
            raise TokenUnreliable
        self._repeats = True
        return session

    async def _begin_session(self) -> Mapping[str, Any]:
        return await self._server.run(lambda client: begin_session(client, _INSERT_SECONDS))

    async def _wait_for_pauses(self) -> bool:
        """Wait for the pauses in force now. Returns whether there was one.

        Later pauses wait for this insert.
        """
        pauses = await self._server.run(in_force)
        if pauses:
            log.debug("waiting: others are comparing tables")
        left = set(pauses)
        while left:
            await asyncio.sleep(_PAUSED_SECONDS)
            left &= await self._server.run(in_force)
        return bool(pauses)
