"""How far the pipeline is behind: until when everything that the edge has given to Kafka is stored.

Two groups process an accepted event before ClickHouse has it: the processors read `events`, the writer reads
`grouped`. Offsets count records, which are chunks of up to hundreds of events, so the lag is measured in
time. A broker finds the first record since a moment, and a group's committed offset is before or behind it.
That needs only Describe on the topics and groups, and no record is read.
"""

import asyncio
import logging
import time
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from broker.client import name_of
from broker.consumer_lag import clients, end_offsets, lags_of
from broker.errors import KafkaError
from broker.types import Admin, Consumer, TopicPartition
from schemas.settings import KafkaSettings
from schemas.topics import Topic

log = logging.getLogger(__name__)
BEHIND_MS: Final = 20_000
"""A steady flow stays below. Commits each second, blocks that wait for a few seconds, and twice the interval
of the looks add up to some ten seconds."""
LOOK_SECONDS: Final = 3.0
_ANSWER_SECONDS: Final = 5.0
_MOST_ANSWER_SECONDS: Final = 40.0
"""A busy broker gets so long for a look, each time twice as long as before."""
_LOOKS: Final = 10_000
"""So many are remembered, more than eight hours."""
AGES_MS: Final = tuple(int(3_000 * 1.02**step) for step in range(680))
"""Buckets for the age of waiting records: from three seconds to three weeks, in steps of 2 %."""


class Behind(Struct, frozen=True):
    """Everything that arrived before `until_ms` (Unix ms) is stored.

    `records` of the topics wait, each of one or many events.
    """

    until_ms: int
    records: int


class Lag(Struct, frozen=True):
    """Whether Kafka has answered lately, and if so how far the pipeline is behind, None in a steady flow."""

    is_known: bool = False
    behind: Behind | None = None


class Grouped(Struct, frozen=True):
    """At `at_ms` the processors had grouped all records that arrived before `until_ms` (Unix ms)."""

    at_ms: int
    until_ms: int


def stored_until(looks: Sequence[Grouped], grouped_before_ms: int) -> int:
    """Until when arrived events are stored, if everything grouped before a moment is stored. Pure.

    The processors may have been behind at that moment. `looks` are the earlier ones, oldest first. For a
    moment before the first of them, the result is the moment itself at most.
    """
    number = bisect_right(looks, grouped_before_ms, key=lambda look: look.at_ms)
    if number:
        return looks[number - 1].until_ms
    return min(grouped_before_ms, looks[0].until_ms) if looks else grouped_before_ms


class PipelineLag:
    """Looks at Kafka in the background; `lag` is the result of the last look.

    One is enough for all requests of a process.
    """

    def __init__(
        self,
        settings: KafkaSettings,
        processors: str,
        writer: str,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        self._settings = settings
        self._groups = processors, writer
        self._now_ms = now_ms
        self._look_seconds = look_seconds
        self._looks: deque[Grouped] = deque(maxlen=_LOOKS)
        self.lag = Lag()

    async def run(self) -> None:
        """Look until cancelled. While Kafka doesn't answer nothing is known."""
        seconds = _ANSWER_SECONDS
        while True:
            try:
                async with clients(self._settings) as (admin, consumer):
                    while True:
                        began = time.monotonic()
                        async with asyncio.timeout(seconds):
                            self.lag = await self._look(admin, consumer)
                        seconds = max(_ANSWER_SECONDS, 2 * (time.monotonic() - began))
                        await asyncio.sleep(self._look_seconds)
            except (KafkaError, OSError) as error:
                if isinstance(error, TimeoutError):
                    seconds = min(2 * seconds, _MOST_ANSWER_SECONDS)
                if self.lag.is_known:
                    log.warning(
                        "can't read the pipeline's lag, retrying: %r",
                        error,
                        extra={"event": "pipeline_lag_unknown"},
                    )
            except Exception:
                # The boundary of a background task: without it the lag would never be known again.
                log.exception(
                    "unexpected error while reading the pipeline's lag, retrying",
                    extra={"event": "pipeline_lag_failed"},
                )
            self.lag = Lag()
            await asyncio.sleep(self._look_seconds)

    async def _look(self, admin: Admin, consumer: Consumer) -> Lag:
        now, (processors, writer) = self._now_ms(), self._groups
        grouped, chunks = await self._stage(admin, consumer, processors, Topic.EVENTS, now)
        self._looks.append(Grouped(now, grouped))
        stored, more = await self._stage(admin, consumer, writer, Topic.GROUPED, now)
        until = stored_until(self._looks, stored)
        is_behind = now - until >= BEHIND_MS
        return Lag(is_known=True, behind=Behind(until, chunks + more) if is_behind else None)

    async def _stage(
        self, admin: Admin, consumer: Consumer, group: str, topic: Topic, now: int
    ) -> tuple[int, int]:
        """The time (Unix ms) before which the group has committed each record of the topic.

        Also returns how many records it has not committed.
        """
        ends = await end_offsets(admin, consumer, name_of(self._settings, topic))
        lags = {tp: lag for tp, lag in (await lags_of(admin, consumer, group, ends)).items() if lag}
        positions = {tp: ends[tp] - lag for tp, lag in lags.items()}
        if not positions:
            return now, 0
        low, high = 0, len(AGES_MS) - 1
        step = low
        while low < high:
            if await _all_committed(consumer, positions, ends, now - AGES_MS[step]):
                high = step
            else:
                low = step + 1
            # The first question, of the shortest age, is the last one in a steady flow.
            step = (low + high) // 2
        return now - AGES_MS[low], sum(lags.values())


async def _all_committed(
    consumer: Consumer,
    positions: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
    moment: int,
) -> bool:
    """Whether the records from before a moment (Unix ms) are before the positions."""
    since = await consumer.offsets_for_times(dict.fromkeys(positions, moment))
    return all(
        position >= (ends[tp] if since[tp] is None else since[tp].offset)
        for tp, position in positions.items()
    )
