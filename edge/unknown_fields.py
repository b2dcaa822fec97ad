"""Samples accepted events for fields that the schema doesn't know, such as misspelt optional ones."""

import re
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Final

from msgspec import Raw

from edge.delivery.outcomes import OutcomeReporter
from edge.metrics import OTHER, BoundedLabel, EdgeMetrics
from schemas.issues import UNKNOWN_FIELD
from schemas.unknown_fields import UnknownField, unknown_fields

_INTERVAL_SECONDS: Final = 60.0
_MAX_EVENT_BYTES: Final = 65_536
"""Larger events may have so many fields that decoding them would block the event loop for long."""

_MAX_REASONS: Final = 100
"""Different fields of a project that a process names; later ones are `other`."""
_WORD: Final = re.compile(r"[A-Za-z_-]{1,32}")
"""Names of fields have no digits; ids of users do."""


class UnknownFieldSampler:
    """Looks at one event a minute of each SDK of a project.

    A look takes some ten microseconds, no look a fraction of one. No text of clients becomes a label of
    metrics: metrics count an unknown field under the nearest known one. Outcomes also name the field itself,
    where it is probably a misspelt one, and only the first `_MAX_REASONS` of a project.
    """

    def __init__(
        self,
        metrics: EdgeMetrics,
        outcomes: OutcomeReporter,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._metrics = metrics
        self._outcomes = outcomes
        self._now = now
        self._sdk = BoundedLabel()
        self._reasons: defaultdict[str, BoundedLabel] = defaultdict(lambda: BoundedLabel(_MAX_REASONS))
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
            self._outcomes.count(project, sdk, UNKNOWN_FIELD, self._reasons[project](reason_of_field(field)))


def reason_of_field(field: UnknownField) -> str:
    """The field, `/` and the nearest known one: `tag/tags`.

    A field that is near none is `other`: its name may be a user's id.
    """
    if field.nearest and _WORD.fullmatch(field.name):
        return f"{field.prefix}{field.name}/{field.prefix}{field.nearest}"
    return f"{field.prefix}{OTHER}"
