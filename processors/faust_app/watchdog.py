"""Detects a worker that makes no progress without failing: it ends, and a supervisor restarts it from its positions."""

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

log = logging.getLogger(__name__)

RECOVERY_SECONDS: Final = 120.0
"""Longest time of a recovery without a record read."""
STALL_SECONDS: Final = 60.0
"""Longest time without progress while records wait."""
SILENCE_SECONDS: Final = 120.0
"""Longest time without an answer from the brokers about the ends of the source topics, and without progress."""
LOOP_SECONDS: Final = 60.0
"""Longest time in which the event loop neither looks at itself nor decides about an event."""
TICK_SECONDS: Final = 1.0
GAP_SECONDS: Final = 5.0
"""Longest time counted between two checks: after a longer gap the whole process was held up."""


class Stalled(Exception):
    """There is work and no progress."""


class Watchdog:
    """Watches the progress of named activities; `check` raises Stalled where one stops for too long."""

    def __init__(self) -> None:
        self._progress: dict[str, tuple[object, float, float]] = {}

    def only(self, name: str) -> None:
        """Forget all other activities: no progress is expected of them for now."""
        self._progress = {key: seen for key, seen in self._progress.items() if key == name}

    def check(
        self, name: str, progress: object, *, waiting: bool, seconds: float, waiting_for: str = ""
    ) -> None:
        """Raise Stalled if `progress` is unchanged for `seconds` while work is `waiting`.

        `progress` is any value that changes while work continues. `waiting_for` names the waiting work, if not `name`.
        """
        now = time.monotonic()
        known = self._progress.get(name)
        stalled = 0.0
        if known is not None and waiting and known[0] == progress:
            stalled = known[2] + min(now - known[1], GAP_SECONDS)
            if stalled > seconds:
                raise Stalled(f"{waiting_for or name}: no progress for {stalled:.0f} s")
        self._progress[name] = (progress, now, stalled)


@contextmanager
def ends_if_blocked(progress: Callable[[], object]) -> Iterator[None]:
    """Watch an event loop: a thread ends the process, as a kill would, if the loop is blocked.

    It is blocked if `progress` is unchanged for LOOP_SECONDS. A blocked loop can't end itself. The thread
    sees no code that never releases the interpreter.
    """
    ended = threading.Event()
    arguments = (progress, ended, threading.get_ident())
    thread = threading.Thread(target=_end_if_blocked, args=arguments, name="watchdog", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _end_if_blocked(progress: Callable[[], object], ended: threading.Event, watched: int) -> None:
    watchdog = Watchdog()
    while not ended.wait(TICK_SECONDS):
        try:
            watchdog.check("event loop", progress(), waiting=True, seconds=LOOP_SECONDS)
        except Stalled as error:
            log.critical(
                "the worker stops: %s: %s, in %s",
                type(error).__name__,
                error,
                _line_of(watched),
                extra={"event": "worker_stalled"},
            )
            os._exit(1)


def _line_of(thread: int) -> str:
    """The file and line that a thread is at."""
    frame = sys._current_frames().get(thread)
    return "?" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"
