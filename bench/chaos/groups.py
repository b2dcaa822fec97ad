"""Who holds which partitions and what lies before them, as the broker tells it: the witness of workers that came and went."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Set
from contextlib import AsyncExitStack, suppress
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment
from aiokafka.errors import GroupLoadInProgressError, KafkaError
from msgspec import Struct

from broker.client import client_options, pause_metadata_retries
from schemas.settings import KafkaSettings

LOOK_SECONDS = 0.3
ANSWER_SECONDS = 5.0
_UUID_LENGTH = 36

Held = Mapping[str, Set[int]]
"""Static members by the name of the worker, each with its partitions."""


class Group(Struct, frozen=True):
    """A consumer group and the topic whose partitions its members share."""

    name: str
    topic: str

    def worker(self, member: str) -> str:
        """The worker's name in a static member's id, `{group}-{worker}-{uuid}`."""
        return member[len(self.name) + 1 : -_UUID_LENGTH - 1]


def shares(group: Group, description: Any) -> Held | None:
    """Who holds what by a broker's description of the group; None while it is not settled."""
    error, _, state, _, _, members = description[:6]
    if error or state != "Stable":
        return None
    found = {group.worker(member): _partitions(group.topic, share) for member, _, _, _, share in members}
    return found if all(found.values()) else None


def _partitions(topic: str, share: bytes) -> Set[int]:
    if not share:
        return frozenset()
    assignment = ConsumerProtocolMemberAssignment.decode(share).assignment
    return frozenset(
        partition for name, partitions in assignment if name == topic for partition in partitions
    )


class Groups:
    """Looks at groups again and again; `rebalances` how often another share-out was seen."""

    def __init__(self, settings: KafkaSettings, groups: Mapping[str, Group]) -> None:
        self._settings = settings
        self._groups = groups
        self._last: dict[str, Held] = {}
        self._now: dict[str, Held | None] = dict.fromkeys(groups)
        self.rebalances: Counter[str] = Counter()
        self.behind: dict[str, int] = {}
        """Records that each group had not committed when it was looked at last; empty while the broker is away."""

    @property
    def kinds(self) -> list[str]:
        """The kinds of workers whose groups are looked at."""
        return [*self._groups]

    def held(self, kind: str) -> Held | None:
        """Who holds what now; None while that is changing, or unknown."""
        return self._now[kind]

    async def run(self) -> None:
        """Look until cancelled; a broker that is away is asked again."""
        while True:
            with suppress(KafkaError, OSError, TimeoutError):
                async with AsyncExitStack() as cleanup:
                    await self._look_on(cleanup)
            await asyncio.sleep(LOOK_SECONDS)

    async def _look_on(self, cleanup: AsyncExitStack) -> None:
        admin = AIOKafkaAdminClient(**client_options(self._settings))
        ends = AIOKafkaConsumer(**client_options(self._settings))
        for close in (admin.close, ends.stop):
            cleanup.push_async_callback(_bounded, close)
        # Nothing is known any more, whether or not the clients can be closed.
        cleanup.callback(self._forget)
        for client in (admin, ends):
            pause_metadata_retries(client._client)
            async with asyncio.timeout(ANSWER_SECONDS):
                await client.start()
        while True:
            for kind, group in self._groups.items():
                async with asyncio.timeout(ANSWER_SECONDS):
                    (answer,) = await admin.describe_consumer_groups([group.name])
                self._see(kind, shares(group, answer.groups[0]))
                async with asyncio.timeout(ANSWER_SECONDS):
                    self.behind[kind] = await _behind(group, self._settings.topic_partitions, admin, ends)
            await asyncio.sleep(LOOK_SECONDS)

    def _forget(self) -> None:
        self._now = dict.fromkeys(self._groups)
        self.behind = {}

    def _see(self, kind: str, seen: Held | None) -> None:
        self._now[kind] = seen
        if seen is None:
            return
        if kind in self._last and self._last[kind] != seen:
            self.rebalances[kind] += 1
        self._last[kind] = seen


async def _bounded(close: Callable[[], Awaitable[None]]) -> None:
    async with asyncio.timeout(ANSWER_SECONDS):
        await close()


async def _behind(
    group: Group, partitions: int, admin: AIOKafkaAdminClient, consumer: AIOKafkaConsumer
) -> int:
    places = [TopicPartition(group.topic, number) for number in range(partitions)]
    offsets = await admin.list_consumer_group_offsets(group.name, partitions=places)
    # aiokafka 0.14 passes over the error of a coordinator that is still loading; one that knows answers -1 where nothing is committed.
    if offsets.keys() < set(places):
        raise GroupLoadInProgressError(group.name)
    ends = await consumer.end_offsets(places)
    return sum(end - max(0, offsets[place].offset) for place, end in ends.items())
