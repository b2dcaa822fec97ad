"""Starts the worker when it is needed, asks it, and kills it when it takes too long."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from contextlib import suppress
from typing import Final

from schemas.errors import ChangesUnavailable
from sourcemaps.worker_messages import LENGTH_BYTES, Answer, Check, Resolve, decode_answer, encode

SECONDS: Final = 40.0
"""Of one question: the worker's own limit is of CPU time, and a busy machine gives it less."""


class WorkerFailed(Exception):
    """The worker died or was too slow, most likely by the map; the next question starts another one."""


class SourceMapWorker:
    """A process that answers one question at a time."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._turn = asyncio.Lock()
        self._process: Process | None = None

    async def ask(self, question: Check | Resolve) -> Answer:
        """The answer. Raises WorkerFailed, and ChangesUnavailable if no process can be started."""
        async with self._turn:
            try:
                async with asyncio.timeout(self._seconds):
                    return await self._ask_twice(question)
            except (TimeoutError, OSError, asyncio.IncompleteReadError):
                await self.close()
                raise WorkerFailed("reading it takes too much time or memory") from None
            except asyncio.CancelledError:
                # Its answer would be taken for that of the next question.
                await self.close()
                raise

    async def close(self) -> None:
        """End the process; a question starts another one."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.returncode is None:
            # Not `process.kill`, which takes the exit status from the loop if the process has ended.
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
        await process.wait()

    async def _ask_twice(self, question: Check | Resolve) -> Answer:
        if self._process is not None:
            with suppress(OSError, asyncio.IncompleteReadError):
                return await self._ask(self._process, question)
            # It may have died of something else: a new process tells.
            await self.close()
        self._process = await self._start()
        return await self._ask(self._process, question)

    async def _start(self) -> Process:
        try:
            return await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", "sourcemaps.worker_process"),
                stdin=PIPE,
                stdout=PIPE,
                # None of our settings: a map that takes over the library finds no password.
                env={"PATH": os.environ.get("PATH", ""), "OPENBLAS_NUM_THREADS": "1"},
                start_new_session=True,
            )
        except OSError as error:
            raise ChangesUnavailable(f"source maps can't be read now: {error.strerror}") from error

    async def _ask(self, process: Process, question: Check | Resolve) -> Answer:
        text = encode(question)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(len(text).to_bytes(LENGTH_BYTES) + text)
        await process.stdin.drain()
        head = await process.stdout.readexactly(LENGTH_BYTES)
        answer: Answer = decode_answer(await process.stdout.readexactly(int.from_bytes(head)))
        return answer
