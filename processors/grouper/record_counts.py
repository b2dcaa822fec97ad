"""Counts of a batch: the increments of issues (`issue-deltas`) and the outcomes of events (`outcomes`). Pure.

Each names the source record that it comes from, so it is counted once however often it is published.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from operator import attrgetter
from typing import Final

from processors.grouper.event_outline import EventOutline
from processors.grouper.fingerprinter import MAX_NAME, EventGrouping
from processors.grouper.rule_budget import SkippedRule
from schemas.chunks import ChunkEvent
from schemas.ids import issue_id, user_hash
from schemas.increments import Increment, Row, SourceIncrements, encode_source, join
from schemas.issues import RULE_SKIPPED, Outcome, OutcomeKind
from schemas.times import HOUR_MS, MINUTE_MS, event_time, iso, to_ms

MAX_OUTCOMES: Final = 1000
"""Outcomes in one record; each takes a kilobyte at most."""
CACHED_ISSUES: Final = 65_536
MAX_BYTES: Final = 1 << 20
"""Size of a record of `issue-deltas`."""
MAX_TOGETHER: Final = 200
"""Increments that are encoded together, if they are not longer than `MAX_BYTES`."""

_ORIGIN: Final = attrgetter("project", "received_ms", "sdk")
_ROW_ORDER: Final = attrgetter("release", "environment", "platform", "hour")

OutcomeCounts = dict[tuple[int, int, str, OutcomeKind, str], int]
"""Events by project, minute, SDK, outcome and reason."""

issue_of = lru_cache(maxsize=CACHED_ISSUES)(issue_id)
"""`schemas.ids.issue_id`, cached: one hash costs more than a look-up."""


class Increments:
    """The increments of one source record, one for each fingerprint.

    `owner_of` is asked once for each: only the first event of a fingerprint can open an issue.
    """

    def __init__(self, owner_of: Callable[[ChunkEvent, EventOutline], str]) -> None:
        self._owner_of = owner_of
        self._sums: dict[tuple[int, int], Increment] = {}
        self._users: set[tuple[int, int, int]] = set()
        self._rows: dict[tuple[int, int, str, str, str, int], Row] = {}

    def count_event(
        self, chunk_event: ChunkEvent, event: EventOutline, result: EventGrouping, fingerprint: int
    ) -> None:
        """Count an event under `fingerprint`: the computed one, or one that was recorded or published earlier."""
        ms = event_time(to_ms(event.timestamp), chunk_event.received_ms)
        project, release = chunk_event.project, event.release[:MAX_NAME]
        total = self._sums.get((project, fingerprint))
        if total is None:
            total = self._sums[project, fingerprint] = Increment(
                issue=issue_of(project, fingerprint),
                project=project,
                fingerprint=fingerprint,
                events=1,
                first_ms=ms,
                last_ms=ms,
                received_ms=chunk_event.received_ms,
                last_event=chunk_event.id,
                first_release=release,
                last_release=release,
                rows=[],
                users=[],
                description=result.description,
                owner=self._owner_of(chunk_event, event),
            )
        else:
            _add(total, ms, release, chunk_event, result)
        self._count(total, release, event, ms // HOUR_MS)
        user = event.user
        if user is not None and user.id:
            key = (project, fingerprint, user_hash(project, user.id))
            if key not in self._users:
                self._users.add(key)
                total.users.append(key[2])

    def finish(self) -> list[Increment]:
        """The increments, in the order in which their fingerprints were first met."""
        for total in self._sums.values():
            if total.events > 1:
                total.rows.sort(key=_ROW_ORDER)
                total.users.sort()
        return list(self._sums.values())

    def _count(self, total: Increment, release: str, event: EventOutline, hour: int) -> None:
        environment, platform = event.environment[:MAX_NAME], event.platform or ""
        key = (total.project, total.fingerprint, release, environment, platform, hour)
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = Row(release, environment, platform, hour, 0)
            total.rows.append(row)
        row.events += 1


def _add(total: Increment, ms: int, release: str, chunk_event: ChunkEvent, result: EventGrouping) -> None:
    total.events += 1
    if ms < total.first_ms or (ms == total.first_ms and release < total.first_release):
        total.first_ms, total.first_release = ms, release
    if ms > total.last_ms or (ms == total.last_ms and chunk_event.id > total.last_event):
        total.last_ms, total.last_event, total.received_ms = ms, chunk_event.id, chunk_event.received_ms
        total.last_release, total.description = release, result.description


class RecordOutcomes:
    """The outcomes of one source record by project, minute of receipt and SDK.

    They are counted once however often the record is published.
    """

    def __init__(self, partition: int, offset: int) -> None:
        self._position = partition, offset
        self._counts: OutcomeCounts = {}

    def accepted(self, events: Iterable[ChunkEvent]) -> None:
        """Count all events of the record."""
        # Events of one request share all three fields: counting in C leaves little to do here.
        for origin, count in Counter(map(_ORIGIN, events)).items():
            self._count(origin, "accepted", "", count)

    def duplicate(self, event: ChunkEvent) -> None:
        """Count an event whose id was seen before."""
        self._count(_ORIGIN(event), "duplicate", "", 1)

    def dead(self, event: ChunkEvent, reason: str) -> None:
        """Count an event that is not published."""
        self._count(_ORIGIN(event), "deadLettered", reason, 1)

    def _count(self, origin: tuple[int, int, str], outcome: OutcomeKind, reason: str, count: int) -> None:
        project, received_ms, sdk = origin
        key = (project, received_ms // MINUTE_MS, sdk, outcome, reason)
        self._counts[key] = self._counts.get(key, 0) + count

    def finish(self) -> dict[int, list[Outcome]]:
        """The outcomes by project."""
        return _outcomes(*self._position, self._counts)


def rules_skipped(
    partition: int, offset: int, skipped: Mapping[SkippedRule, int]
) -> list[tuple[int, list[Outcome]]]:
    """Rules that were skipped on events of one record, by project.

    They are not outcomes of events and in no sum of these.
    """
    counts: OutcomeCounts = {
        (project, minute, "", RULE_SKIPPED, f"{kind}/{name}"): count
        for (project, minute, kind, name), count in skipped.items()
    }
    return list(_outcomes(partition, offset, counts).items())


def _outcomes(partition: int, offset: int, counts: OutcomeCounts) -> dict[int, list[Outcome]]:
    """Outcomes by project. Source and sequence are the record's position, by which repeats are dropped."""
    by_project: dict[int, list[Outcome]] = {}
    for (project, minute, sdk, outcome, reason), count in counts.items():
        by_project.setdefault(project, []).append(
            Outcome(
                project_id=str(project),
                minute=iso(minute * MINUTE_MS),
                sdk=sdk,
                outcome=outcome,
                reason=reason,
                count=count,
                source=f"grouper/{partition}",
                sequence=offset,
            )
        )
    return by_project


def bundles(sources: Iterable[SourceIncrements], partitions: int) -> dict[int, list[bytes]]:
    """Values of `issue-deltas` by target partition, in the order of their sources.

    A batch has one record for each target, if it fits. In a value each increment names its own source record.
    """
    pieces: dict[int, list[bytes]] = {}
    for source in sources:
        by_target: dict[int, list[Increment]] = {}
        for increment in source.increments:
            by_target.setdefault(increment.issue % partitions, []).append(increment)
        for target, increments in by_target.items():
            target_pieces = pieces.setdefault(target, [])
            for start in range(0, len(increments), MAX_TOGETHER):
                piece = increments[start : start + MAX_TOGETHER]
                target_pieces += _encoded(SourceIncrements(source.partition, source.offset, piece))
    return {target: list(_joined(target_pieces)) for target, target_pieces in pieces.items()}


def _encoded(source: SourceIncrements) -> list[bytes]:
    """Increments as pieces of at most MAX_BYTES, or one increment each."""
    piece, middle = encode_source(source), len(source.increments) // 2
    if len(piece) <= MAX_BYTES or not middle:
        return [piece]
    halves = source.increments[:middle], source.increments[middle:]
    return [
        one for half in halves for one in _encoded(SourceIncrements(source.partition, source.offset, half))
    ]


def _joined(pieces: list[bytes]) -> Iterable[bytes]:
    """The pieces as few values of bounded size."""
    start = size = 0
    for end, piece in enumerate(pieces):
        if size and size + len(piece) > MAX_BYTES:
            yield join(pieces[start:end])
            start, size = end, 0
        size += len(piece)
    if size:
        yield join(pieces[start:])
