"""The load: real events of some days, in which some users have the events that are erased in the run."""

from datetime import timedelta
from uuid import UUID

import msgspec
from msgspec import Raw

from bench.load import EventStream

LEAVERS = 8
"""Users of each project whose events are erased in the run."""
LEAVERS_SHARE = 0.02
"""Share of events that are theirs."""


def leaver(number: int) -> str:
    """The id of such a user."""
    return f"leaver {number}"


class Load(EventStream):
    """Its `ids` are the distinct ids so far, `of_leavers` those by user."""

    def __init__(
        self,
        samples: list[dict[str, object]],
        seed: int,
        repeats: float,
        past: timedelta = timedelta(days=20),
    ) -> None:
        # Spread over several days, to cover several time partitions and retention classes.
        super().__init__(samples, seed, repeats, past)
        self.ids: set[UUID] = set()
        self.of_leavers: dict[str, set[UUID]] = {leaver(number): set() for number in range(LEAVERS)}

    def _change(self, event: dict[str, Raw], number: UUID) -> None:
        self.ids.add(number)
        if self._random.random() < LEAVERS_SHARE:
            user = leaver(self._random.randrange(LEAVERS))
            event["user"] = Raw(msgspec.json.encode({"id": user}))
            self.of_leavers[user].add(number)
