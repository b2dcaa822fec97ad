"""Slots that projects take in turn: a project with many messages doesn't delay the others."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class FairSlots:
    """A limited number of slots. A freed slot goes to the project that has waited longest for a turn."""

    def __init__(self, count: int) -> None:
        self._free = count
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        """Waiting callers by project, never empty. The first project is next."""

    @asynccontextmanager
    async def held(self, project: str) -> AsyncIterator[None]:
        """Hold a slot in the `with` block, once it is this project's turn."""
        if self._free:
            self._free -= 1
        else:
            await self._turn(project)
        try:
            yield
        finally:
            self._release()

    async def _turn(self, project: str) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(project, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                # It was given a slot in the same moment.
                self._release()
            raise

    def _release(self) -> None:
        while self._waiting:
            project, queue = next(iter(self._waiting.items()))
            del self._waiting[project]
            turn = queue.popleft()
            if queue:
                # Behind all others.
                self._waiting[project] = queue
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1
