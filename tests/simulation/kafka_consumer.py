"""aiokafka's consumer on the model of a broker."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from aiokafka.errors import (
    CommitFailedError,
    IllegalStateError,
    KafkaConnectionError,
    OffsetOutOfRangeError,
)
from aiokafka.protocol.commit import OffsetCommitRequest
from aiokafka.structs import OffsetAndMetadata, TopicPartition

from tests.simulation.kafka import Group, LogRecord, Member
from tests.simulation.kafka_clients import REQUEST_SECONDS, RETRY_SECONDS, Client, Unused


def _settle(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


class _Connection(Unused):
    """The carrier of a consumer's commits: the product looks at their answers."""

    def __init__(self, consumer: "Consumer") -> None:
        self._consumer = consumer

    async def send(self, _: int, request: OffsetCommitRequest) -> CommitFailedError | None:
        """The answer: None, or a refusal."""
        try:
            await self._consumer.send_commit(request)
        except CommitFailedError as refusal:
            return refusal
        return None


class Consumer(Client):
    """AIOKafkaConsumer."""

    def __init__(self, *topics: str, **options: Any) -> None:
        super().__init__()
        self._topics = list(topics)
        self._group_name: str | None = options.get("group_id")
        self._instance = options.get("group_instance_id") or f"member-{id(self)}"
        self._resets = options.get("auto_offset_reset", "latest") != "none"
        self._positions: dict[TopicPartition, int] = {}
        self._paused: set[TopicPartition] = set()
        self._member: Member | None = None
        self._generation = -1
        self._listener: Any = None
        self._arrived: asyncio.Future[None] | None = None
        self._rejoining: asyncio.Task[None] | None = None
        self._stopped = False
        self._idle_polls = 0
        self._client = _Connection(self)
        self._coordinator = self
        self._fetcher = None
        self.member_id = self._instance
        self._error: BaseException | None = None

    # Life and membership.

    async def start(self) -> None:
        """Connect. Raises KafkaConnectionError."""
        await self._send(lambda: None)
        self.broker.watchers.append(self._appended)
        if self._topics and self._group_name is None:
            self.assign(
                [TopicPartition(t, p) for t in self._topics for p in range(len(self.broker.topics[t]))]
            )

    async def stop(self) -> None:
        """Close; a static member does not leave."""
        self._stopped = True
        if self._appended in self.broker.watchers:
            self.broker.watchers.remove(self._appended)
        if self._rejoining is not None:
            self._rejoining.cancel()

    def check_errors(self) -> None:
        """Raise the error that ended the membership."""
        if self._error is not None:
            raise self._error

    @property
    def _group(self) -> Group:
        assert self._group_name is not None
        return self.broker.group(self._group_name)

    def subscribe(self, topics: Iterable[str], listener: Any = None) -> None:
        """Join the group."""
        self._topics, self._listener = list(topics), listener
        self._rejoining = self._loop.create_task(self._leave_and_join())

    async def _join(self) -> None:
        answer: asyncio.Future[tuple[int, set[TopicPartition]]] = self._loop.create_future()

        def joined(generation: int, partitions: set[TopicPartition]) -> None:
            self.world.after(
                self.network.latency(), lambda: self._loop.deliver(settle, generation, partitions)
            )

        def settle(generation: int, partitions: set[TopicPartition]) -> None:
            if not answer.done():
                answer.set_result((generation, partitions))

        def serve() -> None:
            # A closed connection carries no request.
            if self._stopped:
                return
            if self._member is None or self._group.members.get(self._instance) is not self._member:
                # A member that the group has forgotten, or replaced by another of the name, gets a new id:
                # commits under the old one are refused.
                self._member = Member(self._instance, self._process, self._rebalanced)
            self._group.join(self._member, self._topics, joined)

        await self._ask(serve, 1e9)
        self._generation, partitions = await answer
        commits = await self._commits(partitions)
        self._positions = {
            tp: commits[tp].offset if commits[tp].offset >= 0 else self.broker.log(tp).start
            for tp in sorted(partitions)
        }
        if self._listener is not None:
            await self._listener.on_partitions_assigned(set(partitions))

    async def _commits(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata]:
        """The group's commits; the request is repeated while the group loads."""
        tps = list(partitions)
        while True:
            commits = await self._ask(lambda: self._group.committed(tps), 1e9)
            if commits or not tps:
                return commits
            await asyncio.sleep(RETRY_SECONDS)

    def _rebalanced(self) -> None:
        """The group rebalances, or has forgotten this member."""
        self._loop.deliver(self._rejoin)

    def _rejoin(self) -> None:
        if self._stopped or (self._rejoining is not None and not self._rejoining.done()):
            return
        self._rejoining = self._loop.create_task(self._leave_and_join())

    async def _leave_and_join(self) -> None:
        if self._listener is not None:
            await self._listener.on_partitions_revoked(set(self._positions))
        self._positions = {}
        await self._join()

    # Positions.

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these partitions."""
        self._positions = {tp: self.broker.log(tp).start for tp in partitions}

    def assignment(self) -> set[TopicPartition]:
        """The assigned partitions."""
        return set(self._positions)

    def partitions_for_topic(self, topic: str) -> set[int]:
        """The partitions of a topic."""
        return set(range(len(self.broker.topics.get(topic, ()))))

    def seek(self, tp: TopicPartition, offset: int) -> None:
        """Continue at an offset. Raises IllegalStateError."""
        if tp not in self._positions:
            raise IllegalStateError(f"{tp} is not assigned")
        self._positions[tp] = offset

    def pause(self, *partitions: TopicPartition) -> None:
        """Deliver nothing of partitions."""
        self._paused.update(partitions)

    def resume(self, *partitions: TopicPartition) -> None:
        """Deliver them again."""
        self._paused.difference_update(partitions)

    async def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Continue at the beginning."""
        for tp in partitions or tuple(self._positions):
            self._positions[tp] = self.broker.log(tp).start

    async def position(self, tp: TopicPartition) -> int:
        """The next offset."""
        self._skip(tp)
        return self._positions[tp]

    def _skip(self, tp: TopicPartition) -> None:
        """Compaction leaves offsets without a record: a fetch that ends at the log's end passes them."""
        log = self.broker.log(tp)
        if (
            self.broker.is_up
            and not log.read(self._positions[tp], 1)
            and log.start <= self._positions[tp] <= log.end
        ):
            self._positions[tp] = log.end

    async def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The first offsets."""
        tps = list(partitions)
        return await self._ask(lambda: {tp: self.broker.log(tp).start for tp in tps})

    async def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The offsets that the next records get."""
        tps = list(partitions)
        return await self._ask(lambda: {tp: self.broker.log(tp).end for tp in tps})

    def highwater(self, tp: TopicPartition) -> int:
        """The end as of the last fetch."""
        return self.broker.log(tp).end

    # Reading and commits.

    async def getmany(
        self, *partitions: TopicPartition, timeout_ms: int = 0, max_records: int | None = None
    ) -> dict[TopicPartition, list[LogRecord]]:
        """The next records; none after the timeout. Raises OffsetOutOfRangeError, and the membership's error.

        Who asks again and again while nothing comes waits longer each time, as on a machine that has other work.
        """
        deadline = self._loop.time() + timeout_ms / 1000 * (1 << 2 * self._idle_polls)
        while True:
            self.check_errors()
            found = self._take(partitions or tuple(self._positions), max_records or 500)
            if found:
                self._idle_polls = 0
                await asyncio.sleep(self.network.latency())
                return found
            remaining = deadline - self._loop.time()
            if remaining <= 0:
                self._idle_polls = min(self._idle_polls + 1, 3)
                return {}
            arrived = self._arrived = self._loop.create_future()
            timer = self._loop.call_later(remaining, _settle, arrived)
            try:
                await arrived
            finally:
                timer.cancel()

    async def getone(self, *partitions: TopicPartition) -> LogRecord:
        """The next record."""
        while True:
            for records in (await self.getmany(*partitions, timeout_ms=1000, max_records=1)).values():
                return records[0]

    def _take(
        self, partitions: Sequence[TopicPartition], limit: int
    ) -> dict[TopicPartition, list[LogRecord]]:
        found: dict[TopicPartition, list[LogRecord]] = {}
        if not self.broker.is_up or self._process.is_silent(self.world.now):
            return found
        tps = [tp for tp in partitions if tp in self._positions and tp not in self._paused]
        self.world.random.shuffle(tps)
        for tp in tps:
            log, position = self.broker.log(tp), self._positions[tp]
            if not log.start <= position <= log.end:
                if not self._resets:
                    raise OffsetOutOfRangeError({tp: position})
                position = log.start
            records = log.read(position, limit)
            if records:
                found[tp] = records
                limit -= len(records)
                self._positions[tp] = records[-1].offset + 1
            else:
                self._positions[tp] = log.end
            if limit <= 0:
                break
        return found

    def _appended(self, topic: str, partition: int) -> None:
        arrived = self._arrived
        if arrived is None or arrived.done():
            return
        if not topic or TopicPartition(topic, partition) in self._positions:
            self._arrived = None
            self._loop.deliver(_settle, arrived)

    async def commit(self, offsets: Mapping[TopicPartition, Any]) -> None:
        """Commit. Raises CommitFailedError and IllegalStateError."""
        if any(tp not in self._positions for tp in offsets):
            raise IllegalStateError("not assigned")
        commits: dict[str, list[tuple[int, int, str]]] = {}
        for tp, at in offsets.items():
            commit = at if isinstance(at, OffsetAndMetadata) else OffsetAndMetadata(at, "")
            commits.setdefault(tp.topic, []).append((tp.partition, commit.offset, commit.metadata))
        request = OffsetCommitRequest(
            self._group_name, self._generation, self.member_id, -1, list(commits.items())
        )
        deadline = self._loop.time() + REQUEST_SECONDS
        while True:
            try:
                refusal = await self._client.send(0, request)
            except KafkaConnectionError:
                if self._loop.time() >= deadline:
                    raise CommitFailedError("no answer") from None
                await asyncio.sleep(RETRY_SECONDS)
                continue
            if refusal is not None:
                raise refusal
            return

    async def send_commit(self, request: OffsetCommitRequest) -> None:
        """Send a commit. Raises KafkaConnectionError, and CommitFailedError if the group has another owner."""
        member, generation = self._member, request._consumer_group_generation_id
        commits = {
            TopicPartition(topic, partition): OffsetAndMetadata(offset, metadata)
            for topic, partitions in request._topics
            for partition, offset, metadata in partitions
        }

        def serve() -> None:
            self.broker.check_loaded(self._group)
            if member is None:
                # Without a membership, as by `assign`.
                self._group.offsets.update(commits)
            else:
                self._group.commit(member, generation, commits)

        await self._send(serve, may_be_late=True)

    async def committed(self, tp: TopicPartition) -> int | None:
        """The group's commit."""
        offset = (await self._commits([tp]))[tp].offset
        return offset if offset >= 0 else None
