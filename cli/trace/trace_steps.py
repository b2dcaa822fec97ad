"""The steps of one event in the records of the topics. Pure."""

from collections.abc import Iterator, Sequence
from contextlib import suppress

from msgspec import DecodeError, Struct

from broker.types import Record
from schemas.chunks import ChunkEvent, decode_chunk, decode_grouped, inflated
from schemas.dead_letters import from_headers, replayed_before
from schemas.ids import hex64, issue_id


class Step(Struct, frozen=True):
    """One step of an event in a stage, at Unix milliseconds; None where no time is known."""

    at_ms: int | None
    stage: str
    what: str


class Copy(Struct, frozen=True):
    """One appearance of the event in `events`: a client that repeats a request makes several."""

    partition: int
    offset: int
    at_ms: int
    position: int
    events: int
    event: ChunkEvent

    def steps(self) -> list[Step]:
        where = (
            f"partition {self.partition}, offset {self.offset}, event {self.position + 1} of {self.events}"
        )
        return [
            Step(self.event.received_ms, "edge", f"accepted from {self.event.sdk}"),
            Step(self.at_ms, "events", where),
        ]


def copies(record: Record, project: int, event_id: bytes) -> Iterator[Copy]:
    """Its appearances in a record of `events`. Raises ValueError for a record that isn't one."""
    value = record.value or b""
    if event_id not in inflated(value):
        return
    events = decode_chunk(value)
    for position, event in enumerate(events):
        if event.id == event_id and event.project == project:
            yield Copy(record.partition, record.offset, record.timestamp, position, len(events), event)


def decision(record: Record, copy: Copy) -> Step | None:
    """The grouper's decision about a copy, if a record of `grouped` says it.

    Raises ValueError for a record that isn't one.
    """
    chunk = decode_grouped(record.value or b"")
    if (chunk.partition, chunk.offset) != (copy.partition, copy.offset):
        return None
    where = f"partition {record.partition}, offset {record.offset}"
    if copy.position not in chunk.kept:
        return Step(record.timestamp, "grouped", f"{where}: a repeated id, dropped")
    grouping = chunk.groupings[chunk.grouping_of[chunk.kept.index(copy.position)]]
    issue = hex64(issue_id(copy.event.project, grouping.fingerprint))
    return Step(
        record.timestamp,
        "grouped",
        f"{where}: new, fingerprint {hex64(grouping.fingerprint)} by {grouping.version} {grouping.rule}, issue {issue}",
    )


def letter(record: Record, event_id: bytes, found: Sequence[Copy]) -> Step | None:
    """The step of a dead letter, if it is the event or a record that contains it."""
    if replayed_before(record.headers) is not None:
        return None
    dead, _ = from_headers(record.headers)
    value, positions = record.value or b"", {(copy.partition, copy.offset) for copy in found}
    with suppress(DecodeError):
        value = decode_grouped(value).chunk
    # Only the grouper's letters have positions of `events`.
    is_its_record = dead.stage == "grouper" and (dead.partition, dead.offset) in positions
    if not is_its_record and not _has(value, event_id):
        return None
    return Step(
        record.timestamp,
        "dead-letters",
        f"offset {record.offset}: from {dead.topic} {dead.partition}/{dead.offset}, {dead.stage}: {dead.reason}",
    )


def _has(value: bytes, event_id: bytes) -> bool:
    """Whether a value of `events` has the event."""
    with suppress(DecodeError):
        value = inflated(value)
    return event_id in value
