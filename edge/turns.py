"""Turns for what works long: between such stretches the loop serves everything else that is ready.

When several batches have come at once, as after a moment without the processor, working them off in one go would keep chunks
from leaving and acknowledgements from being read, each time round the loop again.
"""

import asyncio
from collections import deque
from typing import Final

A_ROUND: Final = 2
"""Stretches each time round the loop. With one, delays are shorter still, but chunks leave half empty under full load."""


class Turns:
    """So many turns a round, first come first served."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._left = A_ROUND

    async def mine(self) -> None:
        """Return when it is the caller's turn, which lasts until it waits for anything."""
        loop = asyncio.get_running_loop()
        if self._left:
            if self._left == A_ROUND:
                loop.call_soon(self._next_round)
            self._left -= 1
            return
        turn = loop.create_future()
        self._waiting.append(turn)
        await turn

    def _next_round(self) -> None:
        self._left = A_ROUND
        while self._left and self._waiting:
            turn = self._waiting.popleft()
            # One that went away has no turn to take; one that goes away now loses it, and the next round comes all the same.
            if not turn.done():
                turn.set_result(None)
                self._left -= 1
        if self._left < A_ROUND:
            asyncio.get_running_loop().call_soon(self._next_round)
