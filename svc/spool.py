"""The queue on disk: each event is a file until its outcome is known, so events survive a killed program.

A file is written under a temporary name and renamed. It is not synced: it survives the process but not a power failure.
Programs may share a directory; the server deduplicates events by id.
"""

import contextlib
import json
import os
import stat
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

_SUFFIX: Final = ".json"
_PART: Final = ".part"
_STALE_SECONDS: Final = 3_600


class EventSpool:
    """A directory of at most `max_bytes` of events, each file named by its event's id. Disk errors are not raised."""

    def __init__(self, directory: str, max_bytes: int) -> None:
        self._directory = Path(directory)
        self._max_bytes = max_bytes
        self._lock = threading.RLock()
        self._sizes: dict[str, int] = {}
        self._bytes = 0
        self._leftovers: list[str] = []

    def open(self) -> bool:
        """Create the directory and list an earlier run's events, oldest first; false if that fails."""
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            for entry in sorted(os.scandir(self._directory), key=lambda entry: entry.name):
                with contextlib.suppress(FileNotFoundError):  # another program just sent it
                    self._find(entry)
        except OSError:
            return False
        self._leftovers = list(self._sizes)
        return True

    def _find(self, entry: os.DirEntry[str]) -> None:
        status = entry.stat(follow_symlinks=False)
        if not stat.S_ISREG(status.st_mode):  # reading a FIFO would block
            return
        if entry.name.endswith(_SUFFIX):
            self._grow(entry.name.removesuffix(_SUFFIX), status.st_size)
        elif entry.name.endswith(_PART) and time.time() - status.st_mtime > _STALE_SECONDS:
            Path(entry.path).unlink(missing_ok=True)

    def _grow(self, event_id: str, size: int) -> None:
        self._sizes[event_id] = size
        self._bytes += size

    def write(self, event_id: str, event: bytes) -> bool:
        """Store an event; false if the spool is full or the disk fails."""
        with self._lock:
            if self._bytes + len(event) > self._max_bytes:
                return False
            self._grow(event_id, len(event))
        part = self._directory / (event_id + _PART)
        try:
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(event)
            part.rename(self._directory / (event_id + _SUFFIX))
        except OSError:
            self._shrink(event_id)
            return False
        return True

    def _shrink(self, event_id: str) -> bool:
        with self._lock:
            size = self._sizes.pop(event_id, None)
            self._bytes -= size or 0
            return size is not None

    def remove(self, event_ids: Iterable[str]) -> None:
        """Delete events whose outcome is known."""
        for event_id in event_ids:
            if self._shrink(event_id):
                self._unlink(event_id)

    def _unlink(self, event_id: str) -> None:
        with contextlib.suppress(OSError):
            (self._directory / (event_id + _SUFFIX)).unlink(missing_ok=True)

    def has_leftovers(self) -> bool:
        """Whether events of an earlier run remain to be sent."""
        return bool(self._leftovers)

    def take_leftovers(self, count: int) -> list[tuple[str, bytes]]:
        """Up to `count` events of an earlier run, each returned once; invalid files are deleted."""
        names, self._leftovers = self._leftovers[:count], self._leftovers[count:]
        events = []
        for name in names:
            event = self._read(name)
            if event is None:
                self.remove([name])
            else:
                events.append((name, event))
        return events

    def _read(self, event_id: str) -> bytes | None:
        try:
            event = (self._directory / (event_id + _SUFFIX)).read_bytes()
            content = json.loads(event)
        except (OSError, ValueError, RecursionError):
            return None
        return event if isinstance(content, dict) and content.get("id") == event_id else None

    def after_fork(self) -> None:
        """In a forked child: the parent sends the stored events."""
        self._lock = threading.RLock()
        self._leftovers = []
        self._sizes = {}
        self._bytes = 0
