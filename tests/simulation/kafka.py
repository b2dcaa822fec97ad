"""A model of a Kafka broker: logs, groups with their commits, idempotent producers.

It answers requests; it knows no network. `tests/integration/simulation` plays the same short histories to
this model and to a real broker.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from aiokafka.errors import (
    CommitFailedError,
    GroupLoadInProgressError,
    MessageSizeTooLargeError,
    UnknownTopicOrPartitionError,
)
from aiokafka.structs import OffsetAndMetadata, TopicPartition

from tests.simulation.world import Process, World

Headers = tuple[tuple[str, bytes], ...]


class LogRecord(NamedTuple):
    """A record as a consumer gets it."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers


class NewRecord(NamedTuple):
    """A record as a producer sends it."""

    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers


class Log:
    """One partition."""

    def __init__(self, topic: str, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self.records: list[LogRecord] = []
        self.start = 0
        self.end = 0
        self.sequences: dict[int, tuple[int, int]] = {}
        """Of each producer the last sequence number and the offset that it got."""

    def append(self, records: Sequence[NewRecord]) -> int:
        """Append; returns the first offset."""
        first = self.end
        for record in records:
            self.records.append(LogRecord(self.topic, self.partition, self.end, *record))
            self.end += 1
        return first

    def read(self, offset: int, limit: int) -> list[LogRecord]:
        """Records from an offset on."""
        if not self.records or self.records[-1].offset < offset:
            return []
        begin = bisect_left(self.records, offset, key=lambda record: record.offset)
        return self.records[begin : begin + limit]

    def trim(self, until: int) -> None:
        """Remove the records before an offset."""
        self.start = max(self.start, until)
        self.records = [record for record in self.records if record.offset >= self.start]

    def compact(self, until: int) -> None:
        """Of equal keys before an offset, keep the last; tombstones stay."""
        last = {record.key: record.offset for record in self.records if record.offset < until}
        self.records = [r for r in self.records if r.offset >= until or last[r.key] == r.offset]


class Member:
    """A member of a group.

    `notify` is called when its next heartbeat says that the group rebalances or has forgotten it.
    """

    def __init__(self, name: str, process: Process, notify: Callable[[], None]) -> None:
        self.name = name
        self.process = process
        self.notify = notify
        self.joined: Callable[[int, set[TopicPartition]], None] | None = None
        self.generation = -1
        self.partitions: set[TopicPartition] = set()


class Group:
    """A group with static members."""

    def __init__(self, broker: "Broker", name: str) -> None:
        self.broker = broker
        self.name = name
        self.generation = 0
        self.offsets: dict[TopicPartition, OffsetAndMetadata] = {}
        self.members: dict[str, Member] = {}
        self.topics: set[str] = set()
        self.joining = False
        self.loading_until = 0.0
        self._round = 0

    def join(
        self, member: Member, topics: Iterable[str], joined: Callable[[int, set[TopicPartition]], None]
    ) -> None:
        """A member asks for partitions; `joined` is called with them once all members have, or were given up."""
        self.topics |= set(topics)
        known = self.members.get(member.name)
        if (
            known is not None
            and known is not member
            and not self.joining
            and known.generation == self.generation
        ):
            # A static member that restarts within its session gets its former partitions.
            self.members[member.name] = member
            member.generation, member.partitions = self.generation, known.partitions
            self._tell(known)
            self._watch(member)
            joined(self.generation, set(member.partitions))
            return
        self.members[member.name] = member
        member.joined = joined
        if known is not member:
            if known is not None:
                self._tell(known)
            self._watch(member)
        if not self.joining:
            self._rebalance()
        self._complete(forced=False)

    def leave(self, member: Member) -> None:
        """A member leaves."""
        if self.members.get(member.name) is member:
            self._remove(member)

    def commit(
        self, member: Member, generation: int, offsets: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> None:
        """Commit as a member. Raises CommitFailedError."""
        if self.members.get(member.name) is not member or generation != self.generation:
            self._tell(member)
            raise CommitFailedError("the group has another owner")
        self.offsets.update(offsets)

    def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata]:
        """The commits, -1 where there is none; none at all while the group is loading."""
        if self.broker.world.now < self.loading_until:
            return {}
        return {tp: self.offsets.get(tp, OffsetAndMetadata(-1, "")) for tp in partitions}

    def _watch(self, member: Member) -> None:
        """Remove a member that is silent for a session."""
        world = self.broker.world

        def expire(begin: float) -> None:
            now = world.now
            silent = [s for s in member.process.silences if s.begin <= begin and s.end >= now]
            if silent and self.members.get(member.name) is member:
                world.note(f"group {self.name} forgets {member.name}")
                self._remove(member)

        def silence() -> None:
            begin = world.now
            # The last heartbeat came some time before.
            world.after(self.broker.session_seconds * world.random.uniform(0.7, 1.0), lambda: expire(begin))

        member.process.on_silence.append(silence)
        if member.process.is_silent(world.now):
            silence()

    def _remove(self, member: Member) -> None:
        del self.members[member.name]
        self._tell(member)
        if self.members and not self.joining:
            self._rebalance()
        elif self.joining:
            self._complete(forced=False)

    def _tell(self, member: Member) -> None:
        """With its next heartbeat."""
        world, process = self.broker.world, member.process
        seconds = world.random.uniform(0.0, self.broker.heartbeat_seconds)

        def tell() -> None:
            if not process.alive:
                return
            if process.is_silent(world.now) or not self.broker.is_up:
                world.after(seconds + 0.1, tell)
            else:
                member.notify()

        world.after(seconds, tell)

    def _rebalance(self) -> None:
        self.joining = True
        self._round += 1
        now_round = self._round
        for member in self.members.values():
            if member.joined is None:
                self._tell(member)

        def time_out() -> None:
            if self.joining and self._round == now_round:
                self._complete(forced=True)

        self.broker.world.after(self.broker.session_seconds, time_out)

    def _complete(self, *, forced: bool) -> None:
        waiting = [m for m in self.members.values() if m.joined is None]
        if not self.joining or (waiting and not forced):
            return
        self._round += 1
        self.joining = False
        for member in waiting:
            del self.members[member.name]
            self._tell(member)
        self.generation += 1
        names = sorted(self.members)
        count = max((len(self.broker.topics[topic]) for topic in self.topics), default=0)
        for number, name in enumerate(names):
            member = self.members[name]
            member.generation = self.generation
            member.partitions = {
                TopicPartition(topic, partition)
                for topic in self.topics
                for partition in range(len(self.broker.topics[topic]))
                if partition * len(names) // max(1, count) == number
            }
            joined, member.joined = member.joined, None
            if joined is not None:
                joined(self.generation, set(member.partitions))


class Broker:
    """The logs and groups."""

    session_seconds: Final = 10.0
    heartbeat_seconds: Final = 2.0

    def __init__(self, world: World, topics: Mapping[str, int]) -> None:
        self.world = world
        self.topics = {name: [Log(name, p) for p in range(count)] for name, count in topics.items()}
        self.groups: dict[str, Group] = {}
        self.is_up = True
        self.watchers: list[Callable[[str, int], None]] = []
        self.max_bytes: dict[str, int] = {}
        """The size of the largest record that a topic takes, where it is bounded."""

    def log(self, tp: TopicPartition) -> Log:
        """A partition. Raises UnknownTopicOrPartitionError."""
        logs: list[Log] = self.topics.get(tp.topic, [])
        if tp.partition >= len(logs):
            raise UnknownTopicOrPartitionError(str(tp))
        partition: int = tp.partition
        return logs[partition]

    def group(self, name: str) -> Group:
        """A group, created if necessary."""
        if name not in self.groups:
            self.groups[name] = Group(self, name)
        return self.groups[name]

    def produce(
        self, tp: TopicPartition, producer: int | None, sequence: int, records: Sequence[NewRecord]
    ) -> int:
        """Append a batch; a repetition of one by an idempotent producer changes nothing. Returns the first offset.

        Raises MessageSizeTooLargeError.
        """
        log = self.log(tp)
        limit = self.max_bytes.get(tp.topic)
        if limit is not None and any(len(record.value or b"") > limit for record in records):
            raise MessageSizeTooLargeError
        last = None if producer is None else log.sequences.get(producer)
        if last is not None and sequence <= last[0]:
            return last[1]
        first = log.append(records)
        if producer is not None:
            log.sequences[producer] = sequence, first
        for watcher in self.watchers:
            watcher(tp.topic, tp.partition)
        return first

    def crash(self, seconds: float) -> None:
        """Stop, and start again after some seconds, with a coordinator that loads its groups for a while."""
        self.is_up = False
        self.world.note(f"the broker is down for {seconds:.1f} s")
        self.world.after(seconds, self._start)

    def _start(self) -> None:
        self.is_up = True
        self.world.note("the broker is up")
        for group in self.groups.values():
            group.loading_until = self.world.now + self.world.random.uniform(0.0, 1.5)
        for watcher in self.watchers:
            watcher("", -1)

    def check_loaded(self, group: Group) -> None:
        """Raise GroupLoadInProgressError while the coordinator loads."""
        if self.world.now < group.loading_until:
            raise GroupLoadInProgressError(group.name)
