"""The partition assignments and backlogs of consumer groups, as reported by the broker."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Set
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment
from aiokafka.errors import GroupLoadInProgressError, KafkaError
from msgspec import Struct

from broker.client import client_options, patch_client
from broker.closing import stop_consumer
from schemas.settings import KafkaSettings

POLL_SECONDS = 0.3
ANSWER_SECONDS = 5.0
_UUID_LENGTH = 36

Assignments = Mapping[str, Set[int]]
"""The partitions of each static member, by worker name."""


class Group(Struct, frozen=True):
    """A consumer group and the topic whose partitions its members share."""

    name: str
    topic: str

    def worker(self, member: str) -> str:
        """The worker's name in a static member's id, `{group}-{worker}-{uuid}`."""
        return member[len(self.name) + 1 : -_UUID_LENGTH - 1]


def shares(group: Group, description: Any) -> Assignments | None:
    """The assignments in a broker's description of the group; None during a rebalance."""
    error, _, state, _, _, members = description[:6]
    if error or state != "Stable":
        return None
    assignments = {
        group.worker(member): _partitions(group.topic, share) for member, _, _, _, share in members
    }
    return assignments if all(assignments.values()) else None


def _partitions(topic: str, share: bytes) -> Set[int]:
    if not share:
        return frozenset()
    assignment = ConsumerProtocolMemberAssignment.decode(share).assignment
    return frozenset(
        partition for name, partitions in assignment if name == topic for partition in partitions
    )


class Groups:
    """Polls groups; `rebalances` counts the observed changes of their assignments."""

    def __init__(self, settings: KafkaSettings, groups: Mapping[str, Group]) -> None:
        self._settings = settings
        self._groups = groups
        self._last: dict[str, Assignments] = {}
        self._now: dict[str, Assignments | None] = dict.fromkeys(groups)
        self.rebalances: Counter[str] = Counter()
        self.behind: dict[str, int] = {}
        """The last observed backlog of each group in records; empty while the broker is unavailable."""

    @property
    def kinds(self) -> list[str]:
        """The kinds of workers whose groups are polled."""
        return [*self._groups]

    def assignments(self, kind: str) -> Assignments | None:
        """The current assignments; None if unknown or changing."""
        return self._now[kind]

    async def watch(self) -> None:
        """Poll until cancelled; reconnect to an unavailable broker."""
        while True:
            with suppress(KafkaError, OSError, TimeoutError):
                async with AsyncExitStack() as cleanup:
                    await self._poll(cleanup)
            await asyncio.sleep(POLL_SECONDS)

    async def _poll(self, cleanup: AsyncExitStack) -> None:
        admin = AIOKafkaAdminClient(**client_options(self._settings))
        ends = AIOKafkaConsumer(**client_options(self._settings))
        for close in (admin.close, partial(stop_consumer, ends)):
            cleanup.push_async_callback(_bounded, close)
        # The state is unknown from then on, even if closing a client fails.
        cleanup.callback(self._forget)
        for client in (admin, ends):
            patch_client(client._client)
            async with asyncio.timeout(ANSWER_SECONDS):
                await client.start()
        while True:
            for kind, group in self._groups.items():
                async with asyncio.timeout(ANSWER_SECONDS):
                    (answer,) = await admin.describe_consumer_groups([group.name])
                self._update(kind, shares(group, answer.groups[0]))
                async with asyncio.timeout(ANSWER_SECONDS):
                    self.behind[kind] = await _behind(group, self._settings.topic_partitions, admin, ends)
            await asyncio.sleep(POLL_SECONDS)

    def _forget(self) -> None:
        self._now = dict.fromkeys(self._groups)
        self.behind = {}

    def _update(self, kind: str, seen: Assignments | None) -> None:
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
    tps = [TopicPartition(group.topic, number) for number in range(partitions)]
    offsets = await admin.list_consumer_group_offsets(group.name, partitions=tps)
    # aiokafka 0.14 ignores the error of a loading coordinator; a loaded one answers -1 for a missing commit.
    if offsets.keys() < set(tps):
        raise GroupLoadInProgressError(group.name)
    ends = await consumer.end_offsets(tps)
    return sum(end - max(0, offsets[tp].offset) for tp, end in ends.items())
