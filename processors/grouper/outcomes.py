"""Outcomes of source records: what became of each event, counted once however often a record is forwarded."""

from collections import Counter
from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import Final

from schemas.chunks import ChunkEvent
from schemas.issues import RULE_SKIPPED, Outcome
from schemas.times import iso

MINUTE_MS: Final = 60_000
_ORIGIN: Final = attrgetter("project", "received_ms", "sdk")
DISCARDED: Final = "discarded"
"""Reason of an event that a project's rule dropped: its outcome is `deadLettered`, though no dead letter is written, so that
accepted = stored + duplicate + deadLettered holds (contract, section 2, point 14)."""
UNREADABLE: Final = "unreadable"
MAX_SKIPS: Final = 1000
"""Skipped rules that one record of `outcomes` tells of; each takes a kilobyte at most."""
Skip = tuple[int, int, str, str]
"""A grouping rule that was not asked about events: project, minute of receipt, `tooDear` or `failed`, and the rule's name."""


class RecordOutcomes:
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


def rules_skipped(
    partition: int, offset: int, skipped: Mapping[Skip, int]
) -> list[tuple[int, list[Outcome]]]:
    """What is told of rules that were skipped on events of one record, by project: no end of an event, and in no sum of those.

    However many rules a project has, each list fits into a record.
    """
    found: dict[int, list[Outcome]] = {}
    for (project, minute, kind, name), count in skipped.items():
        found.setdefault(project, []).append(
            Outcome(
                project_id=str(project),
                minute=iso(minute * MINUTE_MS),
                sdk="",
                outcome=RULE_SKIPPED,
                reason=f"{kind}/{name}",
                count=count,
                source=f"grouper/{partition}",
                sequence=offset,
            )
        )
    return [
        (project, all_of[at : at + MAX_SKIPS])
        for project, all_of in found.items()
        for at in range(0, len(all_of), MAX_SKIPS)
    ]
