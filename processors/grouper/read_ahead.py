"""Decoding the table `seen` in threads while a recovery still reads it."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

from processors.grouper.dedup_log import is_entry
from processors.grouper.recovered import PIECE_BYTES, Piece

THREADS: Final = 2
"""More would take memory, and wait for the interpreter's lock."""


class _Partition:
    """What was read of a partition: entries that are waiting for others, their bytes, and the pieces."""

    def __init__(self) -> None:
        self.waiting: dict[bytes, bytes] = {}
        self.size = 0
        self.pieces: list[asyncio.Future[Piece]] = []


class ReadAhead:
    """The pieces of each partition that is being read."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(THREADS, "ids")
        self._partitions: dict[int, _Partition] = {}

    def hold(self, partitions: set[int]) -> None:
        """Follow these partitions, and forget others."""
        for partition in self._partitions.keys() - partitions:
            self.forget(partition)
        for partition in partitions:
            self._partitions.setdefault(partition, _Partition())

    def read(self, partition: int, changes: Sequence[tuple[bytes, bytes | None]]) -> None:
        """Changes that were read; later ones may replace them."""
        state = self._partitions.get(partition)
        if state is None:
            return
        for key, value in changes:
            if value is not None and is_entry(key):
                state.waiting[key] = value
                state.size += len(value)
        if state.size >= PIECE_BYTES:
            work = partial(Piece.of, state.waiting, merged=True)
            state.pieces.append(asyncio.get_running_loop().run_in_executor(self._executor, work))
            state.waiting, state.size = {}, 0

    async def pieces(self, partition: int) -> list[Piece]:
        """What is decoded of a partition, but for pieces that can't be: they may have been replaced."""
        state = self._partitions.get(partition)
        found = await asyncio.gather(*(state.pieces if state else ()), return_exceptions=True)
        return [piece for piece in found if isinstance(piece, Piece)]

    def forget(self, partition: int) -> None:
        """Forget a partition: it is restored, or belongs to another worker."""
        state = self._partitions.pop(partition, None)
        for piece in state.pieces if state else ():
            piece.cancel()
