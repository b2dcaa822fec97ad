"""Outcomes of source records: what became of each event, counted once however often a record is forwarded."""

from collections import Counter
from collections.abc import Iterable
from operator import attrgetter
from typing import Final

from schemas.chunks import ChunkEvent
from schemas.issues import Outcome
from schemas.times import iso

MINUTE_MS: Final = 60_000
_ORIGIN: Final = attrgetter("project", "received_ms", "sdk")
DISCARDED: Final = "discarded"
"""Reason of an event that a project's rule dropped: its outcome is `deadLettered`, though no dead letter is written, so that
accepted = stored + duplicate + deadLettered holds (contract, section 2, point 14)."""
UNREADABLE: Final = "unreadable"


class Outcomes:
    """Outcomes of one record of `events`, by project, minute of receipt and SDK."""

    def __init__(self, partition: int, offset: int) -> None:
        self._source = f"grouper/{partition}"
        self._sequence = offset
        self._counts: dict[tuple[int, int, str, str, str], int] = {}

    def accepted(self, events: Iterable[ChunkEvent]) -> None:
        """Count all events of the record."""
        # Events of one request share all three: counted in C, they leave little to do here.
        for (project, received_ms, sdk), count in Counter(map(_ORIGIN, events)).items():
            key = (project, received_ms // MINUTE_MS, sdk, "accepted", "")
            self._counts[key] = self._counts.get(key, 0) + count

    def duplicate(self, event: ChunkEvent) -> None:
        """Count an event whose id was seen before."""
        self._count(event, "duplicate", "")

    def dead(self, event: ChunkEvent, reason: str) -> None:
        """Count an event that goes no further."""
        self._count(event, "deadLettered", reason)

    def _count(self, event: ChunkEvent, outcome: str, reason: str) -> None:
        key = (event.project, event.received_ms // MINUTE_MS, event.sdk, outcome, reason)
        self._counts[key] = self._counts.get(key, 0) + 1

    def finish(self) -> dict[int, list[Outcome]]:
        """The outcomes by project. The pair of source and sequence is the record's place: a repeat is known by it."""
        found: dict[int, list[Outcome]] = {}
        for (project, minute, sdk, outcome, reason), count in self._counts.items():
            found.setdefault(project, []).append(
                Outcome(
                    project_id=str(project),
                    minute=iso(minute * MINUTE_MS),
                    sdk=sdk,
                    outcome=outcome,  # type: ignore[arg-type]
                    reason=reason,
                    count=count,
                    source=self._source,
                    sequence=self._sequence,
                )
            )
        return found
