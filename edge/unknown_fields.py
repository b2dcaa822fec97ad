"""Samples accepted events for fields that the schema doesn't know, so that a misspelt optional field is seen by somebody."""

import time
from collections.abc import Callable
from typing import Final

from msgspec import Raw

from edge.metrics import OTHER, BoundedLabel, EdgeMetrics
from schemas.unknown_fields import unknown_fields

_INTERVAL_SECONDS: Final = 60.0
_MAX_EVENT_BYTES: Final = 65_536
"""Larger events may have so many fields that decoding them would block the event loop for long."""


class UnknownFieldSampler:
    """Looks at one event a minute of each SDK of a project: a look takes some ten microseconds, no look a fraction of one.

    No text of clients becomes a label: unknown fields are counted under the known one that is nearest.
    """

    def __init__(self, metrics: EdgeMetrics, now: Callable[[], float] = time.monotonic) -> None:
        self._metrics = metrics
        self._now = now
        self._sdk = BoundedLabel()
        self._next: dict[tuple[str, str], float] = {}

    def look(self, project: str, sdk: str, event: bytes | Raw) -> None:
        """Count the unknown fields of a valid event, unless its SDK had its look."""
        key = project, self._sdk(sdk.rpartition("/")[0])
        now = self._now()
        if now < self._next.get(key, 0.0) or len(event) > _MAX_EVENT_BYTES:
            return
        self._next[key] = now + _INTERVAL_SECONDS
        for field in unknown_fields(event):
            self._metrics.unknown_fields.labels(*key, field.prefix + (field.nearest or OTHER)).inc()
