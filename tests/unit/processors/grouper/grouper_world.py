"""The real grouper over one partition of `events` in memory, with crashes wherever something is written."""

from collections import Counter
from collections.abc import Sequence
from typing import cast

import pytest
from prometheus_client import CollectorRegistry

from broker.batch_producer import BatchProducer
from broker.message import Message
from processors.batch_table import BatchTable
from processors.grouper.fingerprinter import Fingerprinter
from processors.grouper.grouped_tail import GroupedTail
from processors.grouper.grouper_stage import GrouperStage, IdLookUp
from processors.grouper.replay_start import PublishedRecord, ReplayBoundary
from processors.positions import SourceRecord
from processors.processors_metrics import ProcessorsMetrics
from schemas.chunks import ChunkEvent, GroupedRecord, decode_chunk, decode_grouped
from schemas.dead_letters import from_headers
from schemas.increments import decode_bundle
from schemas.issues import Outcome, decode_outcomes
from schemas.projects import GroupingRule, OwnerRule, Project, ProjectRegistry, encode_project
from tests.unit.processors.aggregator.world import NAMES, PARTITIONS, Memory, MemoryForwarder, MemoryTable
from tests.unit.processors.made import START, source

PARTITION = 1


def registry(
    rules: Sequence[GroupingRule] = (), discarded: Sequence[str] = (), owners: Sequence[OwnerRule] = ()
) -> ProjectRegistry:
    """One project with these rules, discarded fingerprints and owners."""
    projects = ProjectRegistry()
    project = Project(
        id="1", name="one", created_at="2026-01-01T00:00:00.000Z",
        grouping_rules=tuple(rules), discarded=tuple(discarded), owners=tuple(owners),
    )  # fmt: skip
    projects.apply(b"1", encode_project(project))
    return projects


def no_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every rule that reads anything is too expensive."""
    monkeypatch.setattr("processors.grouper.rule_budget.EVENT_STEPS", 0)
    monkeypatch.setattr("processors.grouper.rule_budget.MAX_STEPS", 0)


class MemoryTail:
    """`GroupedTail` in memory."""

    def __init__(self, memory: Memory, reach: int) -> None:
        self._memory = memory
        self._reach = reach

    async def read(
        self, partition: int, recorded: tuple[int, int] | None = None, _: float = 0.0
    ) -> ReplayBoundary | None:
        """The published records in `grouped`."""
        messages = self._memory.topics.get(("grouped", partition), [])
        forwarded = [PublishedRecord.of(decode_grouped(message.value or b"")) for message in messages]
        if not forwarded:
            return None
        return (
            ReplayBoundary.recorded(*recorded, forwarded)
            if recorded
            else ReplayBoundary.from_records(forwarded, self._reach, whole=True)
        )


class GrouperWorld:
    """A worker, its log, and its outputs for readers that compare source positions."""

    def __init__(self, *, each: bool = False) -> None:
        self.memory = Memory()
        self.log: list[SourceRecord] = []
        self.begins = 0
        self.reach = 8
        self.projects = registry()
        self.stored_ids: IdLookUp | None = None
        self._each = each

    def send(self, *chunks: list[ChunkEvent] | bytes, ms: int = START) -> None:
        """Append records: chunks, or bytes that are none."""
        for chunk in chunks:
            made = source(len(self.log), chunk if isinstance(chunk, list) else [], ms)
            self.log.append(made if isinstance(chunk, list) else made._replace(value=chunk))

    async def start(self) -> None:
        """A new process recovers from the written records."""
        self.memory.crash_in = None
        seen = MemoryTable(self.memory, "seen")
        seen.recover()
        self.metrics = ProcessorsMetrics(CollectorRegistry())
        self.worker = GrouperStage(
            NAMES,
            PARTITIONS,
            cast(BatchTable, seen),
            cast(BatchProducer, MemoryForwarder(self.memory)),
            Fingerprinter(self.projects),
            cast(GroupedTail, MemoryTail(self.memory, self.reach)),
            self.metrics,
            days=7,
            grouped_events=self._each,
            stored_ids=self.stored_ids,
        )
        await self.worker.restore(PARTITION, self.begins, len(self.log))

    async def work(self, limit: int = 48) -> bool:
        """Handle one batch; whether there were records for it."""
        next_offset = self.worker.next_offset(PARTITION) or 0
        sources = self.log[next_offset : next_offset + limit]
        if sources:
            await self.worker.handle_batch({PARTITION: sources})
        return bool(sources)

    async def settle(self, limit: int = 48) -> None:
        """Work until nothing is left."""
        while await self.work(limit):
            pass

    def lose(self, topic: str = "seen", keep: int = 0) -> None:
        """Only the last records of a topic are left."""
        for log in [log for log in self.memory.topics if log[0] == topic]:
            found = self.memory.topics[log]
            self.memory.topics[log] = found[len(found) - keep :]

    def table(self) -> dict[bytes, bytes]:
        """The recovered state of the topic `seen`."""
        seen = MemoryTable(self.memory, "seen")
        seen.recover()
        return dict(seen.part(PARTITION))

    def chunks(self) -> list[list[ChunkEvent]]:
        """The events of each record."""
        return [decode_chunk(one.value) for one in self.log]

    def written(self, topic: str) -> list[Message]:
        """All records of a topic."""
        return [m for (name, _), found in sorted(self.memory.topics.items()) if name == topic for m in found]

    def grouped(self) -> list[GroupedRecord]:
        """Records of `grouped` without repeats."""
        found: list[GroupedRecord] = []
        for message in self.written("grouped"):
            chunk = decode_grouped(message.value or b"")
            if not found or chunk.offset > found[-1].offset:
                found.append(chunk)
        return found

    def rule(self) -> None:
        """From the next start on a rule makes all events one issue."""
        self.projects = registry([GroupingRule(name="one", match="type:*", fingerprint=("all",))])

    def stored(self) -> Counter[bytes]:
        """How often each id was forwarded."""
        values = {source.offset: source.value for source in self.log}
        return Counter(one.events(values[one.offset])[i].id for one in self.grouped() for i in one.kept)

    def forwarded_as(self) -> Counter[int]:
        """Forwarded events by fingerprint."""
        return Counter(
            one.groupings[index].fingerprint for one in self.grouped() for index in one.grouping_of
        )

    def counted(self) -> Counter[int]:
        """Events that issues count, by fingerprint: an increment that is not beyond an issue's position is a repeat."""
        total, at = Counter[int](), dict[int, int]()
        for target in range(PARTITIONS):
            for message in self.memory.topics.get(("issue-deltas", target), []):
                for one in decode_bundle(message.value or b""):
                    for increment in one.increments:
                        if one.offset > at.get(increment.issue, -1):
                            at[increment.issue] = one.offset
                            total[increment.fingerprint] += increment.events
        return total

    def outcomes(self) -> Counter[str]:
        """Events by outcome, without repeats."""
        rows: dict[tuple[object, ...], Outcome] = {}
        for message in self.written("outcomes"):
            for one in decode_outcomes(message.value or b""):
                key = (one.project_id, one.minute, one.sdk, one.outcome, one.reason, one.source, one.sequence)
                rows[key] = one
        found = Counter[str]()
        for one in rows.values():
            found[one.outcome] += one.count
        return found

    def dead_letter_messages(self) -> list[int]:
        """Source offsets of the dead letters."""
        return [from_headers(message.headers)[0].offset for message in self.written("dead-letters")]
