"""The real aggregator over partitions in memory, with a crash at any write."""

import itertools
from collections.abc import Awaitable, Iterable, Mapping
from typing import cast

from msgspec import Raw
from msgspec.structs import replace
from prometheus_client import CollectorRegistry

from broker.batch_producer import BatchProducer, WrittenBatch
from broker.message import Message
from processors.aggregator.aggregator_stage import AggregatorStage
from processors.aggregator.position import DeltasPosition, deltas_key, encode_position
from processors.batch_table import BatchTable
from processors.grouper.record_counts import issue_of
from processors.positions import SourceRecord
from processors.processors_metrics import ProcessorsMetrics
from schemas.dead_letters import from_headers
from schemas.ids import hex64
from schemas.increments import (
    Description,
    Increment,
    Row,
    SourceIncrements,
    encode_description,
    encode_source,
    join,
)
from schemas.issues import (
    Activity,
    Command,
    DeltaRecord,
    IssueRecord,
    decode_activity,
    decode_issue,
    encode_json,
)
from schemas.times import iso
from schemas.topics import Topic

PROJECT = 1
START = 1_790_000_000_000
NAMES = {topic: topic.title for topic in Topic}
PARTITIONS = 3


class Crash(Exception):
    """The process ends here, as by kill -9."""


class Memory:
    """Topics: lists of messages by topic and partition. `crash_in` writes it goes down, before or after the write."""

    def __init__(self) -> None:
        self.topics: dict[tuple[str, int], list[Message]] = {}
        self.crash_in: int | None = None

    def append(self, topic: str, partition: int, messages: Iterable[Message]) -> None:
        """One write. Raises Crash."""
        if self.crash_in is not None:
            self.crash_in -= 1
            if self.crash_in == 0:
                raise Crash
        self.topics.setdefault((topic, partition), []).extend(messages)
        if self.crash_in is not None:
            self.crash_in -= 1
            if self.crash_in == 0:
                raise Crash


class MemoryForwarder:
    """`BatchProducer` in memory."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    async def begin(
        self, topic: str, partition: int, messages: Iterable[Message]
    ) -> list[Awaitable[WrittenBatch]]:
        """Append records."""
        messages = list(messages)
        if messages:
            self._memory.append(topic, partition, messages)
        return []


class MemoryTable:
    """`BatchTable` in memory."""

    def __init__(self, memory: Memory, topic: str) -> None:
        self._memory = memory
        self._topic = topic
        self.parts: dict[int, dict[bytes, bytes]] = {}

    def recover(self) -> None:
        """Load the topic, as a recovery does."""
        for (topic, partition), messages in self._memory.topics.items():
            kept: dict[bytes, bytes] = {}
            for message in messages if topic == self._topic else []:
                key = message.key or b""
                kept.pop(key, None)
                if message.value is not None:
                    kept[key] = message.value
            if topic == self._topic:
                self.parts[partition] = kept

    def part(self, partition: int) -> Mapping[bytes, bytes]:
        """The stored values of one partition."""
        return self.parts.setdefault(partition, {})

    async def check_owner(self, partition: int) -> None:
        """There is no other writer."""

    def epoch(self, partition: int) -> int | None:  # noqa: ARG002
        """There is one owner."""
        return 0

    async def write(self, partition: int, changes: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Change keys of one partition."""
        changes = list(changes)
        if not changes:
            return
        self._memory.append(self._topic, partition, [Message(key, value) for key, value in changes])
        part = self.parts.setdefault(partition, {})
        for key, value in changes:
            if value is None:
                part.pop(key, None)
            else:
                part[key] = value


class World:
    """A worker with the inputs and outputs of tests."""

    def __init__(self) -> None:
        self.memory = Memory()
        self._source = itertools.count()
        self._ids = itertools.count()
        self._worker = self._started()

    def _started(self, *, whole: bool = True, begins: int = 0) -> AggregatorStage:
        tables = {}
        for name in ("issues", "seen"):
            table = tables[name] = MemoryTable(self.memory, name)
            table.recover()
        worker = AggregatorStage(
            NAMES,
            PARTITIONS,
            cast(BatchTable, tables["issues"]),
            cast(BatchTable, tables["seen"]),
            cast(BatchProducer, MemoryForwarder(self.memory)),
            ProcessorsMetrics(CollectorRegistry()),
        )
        for partition in range(PARTITIONS):
            # Expired records stay in the log's list; a broker would not deliver them.
            start = min(begins, len(self.memory.topics.get(("issue-deltas", partition), [])))
            assert worker.restore(partition, start) or not whole
        return worker

    def restart(self) -> None:
        """A new process recovers from the written records."""
        self.memory.crash_in = None
        self._worker = self._started()

    def lose(self, *tables: str, begins: int = 0) -> None:
        """Topics are emptied (without names that of issues), and a new process takes over; logs begin at an offset."""
        for log in [log for log in self.memory.topics if log[0] in (tables or ("issues",))]:
            del self.memory.topics[log]
        self.resume(begins)

    def resume(self, begins: int = 0) -> None:
        """A new process takes over tables that aren't whole; logs begin at an offset."""
        self._worker = self._started(whole=False, begins=begins)

    def log(self, topic: str, partition: int) -> list[Message]:
        """The records of a partition."""
        return self.memory.topics.setdefault((topic, partition), [])

    def note(self, partition: int, position: DeltasPosition) -> None:
        """Write a position, as `svc rebuild` does."""
        self.memory.append("seen", partition, [Message(deltas_key(partition), encode_position(position))])

    async def work(self, limit: int = 1000) -> bool:
        """Let each partition handle up to `limit` records; whether there were any. Raises Crash."""
        batches = {}
        for partition in range(PARTITIONS):
            next_offset = self._worker.next_offset(partition) or 0
            log = self.memory.topics.get(("issue-deltas", partition), [])
            if next_offset < len(log):
                batches[partition] = [
                    SourceRecord(next_offset + n, START, m.key, m.value or b"", [])
                    for n, m in enumerate(log[next_offset : next_offset + limit])
                ]
        for partition, sources in batches.items():
            await self._worker.handle_batch({partition: sources})
        return bool(batches)

    async def settle(self, limit: int = 1000) -> None:
        """Work until nothing is left."""
        while await self.work(limit):
            pass

    def put(self, partition: int, delta: DeltaRecord) -> None:
        """Append to `issue-deltas`."""
        self.memory.topics.setdefault(("issue-deltas", partition), []).append(
            Message(None, encode_json(delta))
        )

    def send(self, fingerprint: int, *increments: Increment) -> None:
        """Increments, each of a separate source record."""
        for one in increments:
            bundle = join([encode_source(SourceIncrements(0, next(self._source), [one]))])
            target = issue_of(PROJECT, fingerprint) % PARTITIONS
            self.memory.topics.setdefault(("issue-deltas", target), []).append(Message(None, bundle))

    def ask(self, issue: str, kind: str, data: Mapping[str, object], command_id: str = "") -> str:
        """A command; its id."""
        made = command_id or f"command-{next(self._ids):028}"
        command = Command(made, issue, str(PROJECT), kind, "ann", iso(START), dict(data))
        self.put(int(issue, 16) % PARTITIONS, DeltaRecord(command=command))
        return made

    def issue(self, fingerprint: int) -> IssueRecord:
        """The last published record of a fingerprint's own issue."""
        found = self._published(fingerprint)
        assert found
        assert found[-1] is not None
        return decode_issue(found[-1])

    def knows(self, fingerprint: int) -> bool:
        """Whether the fingerprint's own issue has a record."""
        return bool(self._published(fingerprint))

    def _published(self, fingerprint: int) -> list[bytes | None]:
        key = id_of(fingerprint).encode()
        partition = issue_of(PROJECT, fingerprint) % PARTITIONS
        return [m.value for m in self.memory.topics.get(("issues", partition), []) if m.key == key]

    def activities(self, *kinds: str, is_rebuilt: bool = False) -> list[Activity]:
        """Activities without repeats (which are equal), in order by partition.

        Rebuilt issues have counted events that they had not when something was told first.
        """
        found: dict[str, Activity] = {}
        for (topic, _), messages in sorted(self.memory.topics.items(), key=lambda item: item[0]):
            for message in messages if topic == "issue-activity" else []:
                one = decode_activity(message.value or b"")
                known = found.setdefault(one.id, one)
                assert known == (replace(one, subject=known.subject) if is_rebuilt else one)
        return [one for one in found.values() if not kinds or one.kind in kinds]

    def dead_letter_messages(self) -> list[str]:
        """Why records were dead-lettered."""
        found = self.memory.topics.get(("dead-letters", 0), [])
        return [from_headers(message.headers)[0].reason for message in found]


def increment(
    fingerprint: int = 1, release: str = "app@1.0.0+1", events: int = 1, users: Iterable[int] = (), ms: int = START,
    environment: str = "prod", owner: str = "",
) -> Increment:  # fmt: skip
    """An increment of a few events of one release."""
    description = Description("E", "m", "f", "v1", "stack", ("p",))
    return Increment(
        issue=issue_of(PROJECT, fingerprint), project=PROJECT, fingerprint=fingerprint, events=events, first_ms=ms,
        last_ms=ms, received_ms=ms, last_event=bytes(16), first_release=release, last_release=release,
        rows=[Row(release, environment, "ios", ms // 3_600_000, events)], users=list(users),
        description=Raw(encode_description(description)), owner=owner,
    )  # fmt: skip


def id_of(fingerprint: int) -> str:
    """The issue that a fingerprint opens."""
    return hex64(issue_of(PROJECT, fingerprint))
