"""aiokafka's clients as the product uses them, on the model of a broker.

They are as patient as aiokafka: a request is repeated until its timeout, a batch arrives once and in order,
and a request that was sent before its process died may arrive after that.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar

from aiokafka.coordinator.protocol import ConsumerProtocol
from aiokafka.errors import (
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
)
from aiokafka.structs import OffsetAndMetadata, TopicPartition

from tests.simulation.kafka import Broker, Group, Member
from tests.simulation.virtual_time import VirtualLoop
from tests.simulation.world import World

T = TypeVar("T")
REQUEST_SECONDS: Final = 40.0
RETRY_SECONDS: Final = 0.25
_LEADERS: Final = 0.5


class Network:
    """The network between the processes and the broker.

    `clumsy` is the share of requests that are late or whose connection breaks.
    """

    def __init__(self, world: World, broker: Broker, clumsy: float = 0.0, late: float = 0.0) -> None:
        self.world = world
        self.broker = broker
        self.clumsy = clumsy
        self.late = late
        """The most seconds by which a request is late."""
        self.held = 0.0
        """The seconds by which the next one is, if any."""

    def latency(self) -> float:
        """Seconds of one way."""
        random = self.world.random
        if random.random() < self.clumsy:
            return random.choice((0.05, 0.5, 3.0)) * random.random()
        return 0.0005 + 0.001 * random.random()

    def delay(self) -> float:
        """Seconds by which a request is late; 0 for one in time."""
        if self.held:
            held, self.held = self.held, 0.0
            return held
        random = self.world.random
        return random.uniform(0.5, self.late) if self.late and random.random() < self.clumsy / 4 else 0.0

    def has_leader(self) -> bool:
        """Whether a client that was not answered for long knows a partition's leader."""
        return self.world.random.random() < _LEADERS

    def serve_late(self, serve: Callable[[], object]) -> None:
        """Serve a request that its sender has given up."""
        if self.broker.is_up:
            with suppress(KafkaError):
                serve()

    def breaks(self) -> bool:
        """Whether the connection of this request breaks."""
        return not self.broker.is_up or self.world.random.random() < self.clumsy / 4


class Client:
    """The base of all clients: its loop, and requests that are repeated until an answer comes."""

    network: Network

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        self._loop = loop
        self._process = loop._process
        self.world = loop._world
        self.broker = self.network.broker

    def _send(self, serve: Callable[[], T], *, may_be_late: bool = False) -> "asyncio.Future[T]":
        """One request, as a future of its answer.

        The future fails with KafkaConnectionError where the connection breaks before or after the request was
        served. One that may be late can be served some time after that error.
        """
        future: asyncio.Future[T] = self._loop.create_future()
        network, world = self.network, self.world
        self._process.step()

        def settle(result: Any, error: BaseException | None) -> None:
            if future.done():
                return
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)
                future.exception()

        def arrive() -> None:
            result: Any = None
            error: BaseException | None = KafkaConnectionError() if network.breaks() else None
            if error is None and may_be_late and (seconds := network.delay()):
                error = KafkaConnectionError()
                world.after(seconds, lambda: network.serve_late(serve))
            if error is None:
                try:
                    result = serve()
                except Exception as refused:  # noqa: BLE001 - the answer
                    error = refused
                else:
                    error = KafkaConnectionError() if network.breaks() else None
            world.after(network.latency(), lambda: self._loop.deliver(settle, result, error))

        if self._process.is_silent(world.now):
            world.after(network.latency(), lambda: self._loop.deliver(settle, None, KafkaConnectionError()))
        else:
            world.after(network.latency(), arrive)
        return future

    async def _ask(
        self, serve: Callable[[], T], seconds: float = REQUEST_SECONDS, *, may_be_late: bool = False
    ) -> T:
        """Repeat a request until it is answered. Raises KafkaTimeoutError."""
        deadline = self._loop.time() + seconds
        while True:
            try:
                return await self._send(serve, may_be_late=may_be_late)
            except KafkaConnectionError:
                if self._loop.time() >= deadline:
                    raise KafkaTimeoutError from None
                await asyncio.sleep(RETRY_SECONDS)


class Unused:
    """Parts of aiokafka's clients that the product patches, and that nothing here needs."""

    _sender_task = None

    async def _metadata_update(self, *_: Any, **__: Any) -> bool:
        return True

    async def _send_produce_req(self, *_: Any) -> None:
        return None

    async def add_topic(self, topic: str) -> None:
        return None

    def force_metadata_update(self) -> "asyncio.Future[bool]":
        done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        done.set_result(True)
        return done

    async def bootstrap(self) -> None:
        return None

    async def _get_conn(self, *_: Any, **__: Any) -> None:
        return None

    async def close(self) -> None:
        return None

    @property
    def cluster(self) -> "Unused":
        return self

    def leader_for_partition(self, tp: TopicPartition) -> int:
        return 0


class Settings:
    """An answer about the settings of one topic: done, and all are defaults."""

    resources = ((0, "", 2, "", ()),)


class Described:
    """An answer about groups."""

    def __init__(self, groups: Sequence[Group]) -> None:
        self._groups = [
            {
                "state": "PreparingRebalance" if group.joining else "Stable" if group.members else "Empty",
                "members": [_member(group.members[name]) for name in sorted(group.members)],
            }
            for group in groups
        ]

    def to_object(self) -> dict[str, Any]:
        """As aiokafka decodes it."""
        return {"groups": self._groups}


def _member(member: Member) -> dict[str, Any]:
    assignment = [(tp.topic, [tp.partition]) for tp in sorted(member.partitions)]
    encoded = ConsumerProtocol.ASSIGNMENT(0, assignment, b"").encode()
    return {"member_id": member.name, "member_assignment": encoded}


class Admin(Client):
    """AIOKafkaAdminClient."""

    def __init__(self, **_: Any) -> None:
        super().__init__()
        self._client = Unused()

    async def start(self) -> None:
        """Connect."""
        await self._send(lambda: None)

    async def close(self) -> None:
        """Close."""

    async def list_consumer_group_offsets(
        self, group: str, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """A group's commits."""
        tps = list(partitions)
        return await self._ask(lambda: self.broker.group(group).committed(tps))

    async def describe_consumer_groups(self, groups: Sequence[str]) -> list["Described"]:
        """The members of groups."""
        return await self._ask(lambda: [Described([self.broker.group(group) for group in groups])])

    async def describe_configs(self, _: Sequence[Any]) -> list["Settings"]:
        """The settings of one topic, of which the model knows none."""
        return await self._ask(lambda: [Settings()])

    alter_configs = describe_configs

    async def delete_records(self, records: Mapping[TopicPartition, Any]) -> None:
        """Delete the records before an offset."""

        def delete() -> None:
            for tp, until in records.items():
                self.broker.log(tp).trim(until.before_offset)

        await self._ask(delete)

    async def describe_topics(self, topics: Sequence[str]) -> list[dict[str, Any]]:
        """The partitions of topics."""
        return await self._ask(
            lambda: [
                {
                    "topic": topic,
                    "partitions": [{"partition": log.partition} for log in self.broker.topics.get(topic, ())],
                }
                for topic in topics
            ]
        )
