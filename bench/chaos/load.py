"""The load: real events under new ids, some of them repeated later."""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from uuid import UUID

import msgspec

from cli.demo.sample_events import renewed
from schemas.ids import uuid7
from schemas.times import iso, to_ms

REMEMBERED = 5_000
"""The last events, which may be repeated: in the same chunk, the next one or much later."""
LEAVERS = 8
"""Users of each project whose events are erased in the run."""
LEAVERS_SHARE = 0.02
"""Share of events that are theirs."""


def leaver(number: int) -> str:
    """The id of such a user."""
    return f"leaver {number}"


class Load:
    """An endless, reproducible stream of events of the last `past`; `ids` are the distinct ids so far, `of_leavers` those by user."""

    def __init__(
        self,
        samples: list[dict[str, object]],
        seed: int,
        repeats: float,
        past: timedelta = timedelta(days=20),
    ) -> None:
        self._random = random.Random(seed)
        self._samples = [msgspec.json.encode(renewed(s, datetime.now(UTC))) for s in samples]
        self._recent: list[bytes] = []
        self._repeats = repeats
        self._now, self._past = datetime.now(UTC), past
        self.ids: set[UUID] = set()
        self.of_leavers: dict[str, set[UUID]] = {leaver(number): set() for number in range(LEAVERS)}
        self.repeated = 0

    def events(self, count: int) -> Iterator[bytes]:
        """The next `count` events as JSON."""
        for _ in range(count):
            yield self._repeat() if self._recent and self._random.random() < self._repeats else self._fresh()

    def _repeat(self) -> bytes:
        self.repeated += 1
        return self._random.choice(self._recent)

    def _fresh(self) -> bytes:
        # Spread over several days, to cover several time partitions and retention classes.
        moment = self._now - self._past * self._random.random() ** 4
        value = uuid7(to_ms(moment))
        # Skewed like real events: a few issues have most of them.
        sample = self._samples[int(len(self._samples) * self._random.random() ** 3)]
        event = msgspec.json.decode(sample, type=dict[str, msgspec.Raw])
        event["id"] = msgspec.Raw(f'"{value}"'.encode())
        event["timestamp"] = msgspec.Raw(f'"{iso(to_ms(moment))}"'.encode())
        if self._random.random() < LEAVERS_SHARE:
            user = leaver(self._random.randrange(LEAVERS))
            event["user"] = msgspec.Raw(msgspec.json.encode({"id": user}))
            self.of_leavers[user].add(value)
        line = msgspec.json.encode(event)
        self.ids.add(value)
        if len(self._recent) < REMEMBERED:
            self._recent.append(line)
        else:
            self._recent[self._random.randrange(REMEMBERED)] = line
        return line
