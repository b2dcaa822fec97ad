"""Checks before each try of a block's insert: the plan is ours, no pause is in force, and the token holds.

The server takes the insert only in a session that began before the checks and soon ends. A slow server gets
longer sessions. These are announced there, and comparisons of tables wait for their end.

A repeat waits for earlier tries that the server still runs: one that ends long after the repeat could find the
token forgotten, and insert the block a second time. It isn't made if the server has any row of the block: a
statement that is admitted in time may still take long to reach the tables, and find the token forgotten too.
"""

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from math import inf
from typing import Any, Final, Protocol, TypeVar

from storage.client import Client, scalar
from storage.exactly_once.block_plan import BlockPlan
from storage.exactly_once.block_tokens import is_reliable
from storage.exactly_once.insert_pauses import announce, in_force
from storage.exactly_once.server_state import server_state
from storage.replicas import begin_session

log = logging.getLogger(__name__)
T = TypeVar("T")

RUNNING_TRIES: Final = """
    SELECT count() FROM system.processes
    WHERE query_kind = 'Insert' AND current_database = currentDatabase()
        AND Settings['insert_deduplication_token'] = {token:String}"""
_PAUSED_SECONDS: Final = 0.1
_INSERT_SECONDS: Final = 2
"""How long an insert may take from its checks to the server without an announcement: less than Kafka takes to
give the partition to another writer."""
_MOST_SECONDS: Final = 40
"""Less than a consistent read waits for."""
_SPARE: Final = 4
"""How many times longer a session is than the checks took."""
_TRIES: Final = 2
"""Tries after which each session is twice as long as the last one, whatever the checks took."""
_DOUBLINGS: Final = 5


class Statements(Protocol):
    """Runs statements on the server that takes the inserts."""

    async def run(self, work: Callable[[Client], T]) -> T:
        """Return the result of `work`, once the server answers."""


class TokenUnreliable(Exception):
    """The token may not prevent a second insert of the block."""


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


class SessionLength:
    """The length of the sessions of a server's inserts, as long as its answers ask for."""

    def __init__(self) -> None:
        self.seconds = _INSERT_SECONDS

    def suffices(self, took: float) -> bool:
        """Whether a session that is half over after these seconds of checks lasts until the insert arrives.

        The next session has the length that these checks ask for.
        """
        # The longest session is tried even if the checks took too long: the server then refuses a late insert.
        enough = took * 2 <= self.seconds or self.seconds == _MOST_SECONDS
        self.seconds = min(max(math.ceil(_SPARE * took), _INSERT_SECONDS), _MOST_SECONDS)
        return enough

    def stretch(self, seconds: int) -> None:
        """Make the next session this long at least."""
        self.seconds = min(max(self.seconds, seconds), _MOST_SECONDS)


class InsertGuard:
    """Checks before each try of an insert: no pause is in force, and the plan is ours.

    Before a repeat it also checks that the server runs no earlier try, that no row of the block is `known` to it,
    and that the token can still be relied on.
    The server takes the insert for a limited time only: others may complete the block while this process is
    frozen.
    """

    def __init__(
        self,
        server: Statements,
        token: str,
        renew: Renewer,
        length: SessionLength,
        known: Callable[[Client], bool],
        *,
        repeats: bool,
    ) -> None:
        self._server = server
        self._token = token
        self._renew = renew
        self._length = length
        self._known = known
        self._repeats = repeats
        self._tries = 0

    async def __call__(self) -> Mapping[str, Any]:
        """Returns settings of the insert. Raises TokenUnreliable, and CommitFailedError like `Renewer`."""
        self._tries += 1
        if self._tries > _TRIES:
            # The way of the insert itself isn't measured.
            self._length.stretch(_INSERT_SECONDS << min(self._tries - _TRIES, _DOUBLINGS))
        while True:
            session, took = await self._check()
            if self._length.suffices(took):
                # From now on the server may have the rows, even if the insert fails here.
                self._repeats = True
                return session
            log.info(
                "the checks of an insert took %.1f s: extending its session to %d s",
                took,
                self._length.seconds,
                extra={"event": "insert_session_extended"},
            )

    async def _check(self) -> tuple[Mapping[str, Any], float]:
        """A session that began before the checks, and the seconds since then."""
        began = time.monotonic()
        # Before the checks below, so that none of them is older than the session.
        session = await self._begin_session()
        waited = await self._wait_for_pauses()
        if self._repeats:
            waited = await self._wait_for_earlier_tries() or waited
        if waited:
            # The session may have ended meanwhile, and the partition may have another owner.
            began = time.monotonic()
            session = await self._begin_session()
        await self._renew(always=waited)
        if self._repeats and await self._server.run(self._known):
            raise TokenUnreliable
        # Last: a completion pauses inserts, and this finds a pause that ended since the plan.
        if self._repeats and not is_reliable(self._renew.plan.mark, await self._server.run(server_state)):
            raise TokenUnreliable
        return session, time.monotonic() - began

    async def _begin_session(self) -> Mapping[str, Any]:
        seconds = self._length.seconds
        session = await self._server.run(lambda client: begin_session(client, seconds))
        if seconds > _INSERT_SECONDS:
            # After the session has begun: it ends before its announcement does. Before pauses are looked for: the
            # holder of one that isn't seen here sees the announcement.
            await self._server.run(lambda client: announce(client, seconds))
        return session

    async def _wait_for_earlier_tries(self) -> bool:
        """Wait until the server runs no try of this insert. Returns whether it ran one."""
        waited = False
        while await self._server.run(lambda client: scalar(client, RUNNING_TRIES, {"token": self._token})):
            waited = True
            await asyncio.sleep(_PAUSED_SECONDS)
        return waited

    async def _wait_for_pauses(self) -> bool:
        """Wait for the pauses in force now. Returns whether there was one.

        Later pauses wait for this insert.
        """
        pauses = await self._server.run(in_force)
        if pauses:
            log.debug(
                "inserts are paused while another process compares tables", extra={"event": "insert_paused"}
            )
        left = set(pauses)
        while left:
            await asyncio.sleep(_PAUSED_SECONDS)
            left &= await self._server.run(in_force)
        return bool(pauses)
