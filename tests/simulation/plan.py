"""What a seed stands for: what clients send, what operators do, what fails and when.

Everything is planned at the start, one entry after another with chances of its own, so that a part of a plan is a plan too.
"""

from random import Random
from typing import Final

from msgspec import Struct

from tests.simulation.clickhouse_tables import WINDOW

_FAULTS: Final = (
    *("kill", "kill", "step", "step", "step", "freeze", "freeze", "cut", "broker", "broker", "clickhouse"),
    *("slow", "twin", "twin", "sleep", "clock", "full", "power", "bit", "compaction", "refusal"),
    *("part", "part", "part", "retention", "retention", "garbage"),
)
COMMANDS: Final = ("change", "change", "project", "repair", "replay", "erase", "rebuild")


class Shape(Struct, frozen=True):
    """How large a schedule is, and how its servers are."""

    partitions: int
    workers: int
    writers: int
    window: int
    clumsy: float
    late: float
    seconds: float


class Entry(Struct, frozen=True):
    """Something that happens at a time."""

    at: float
    what: str
    seed: int


def plan(seed: int) -> tuple[Shape, list[Entry]]:
    """What a seed stands for."""
    random = Random(seed)
    late = random.random() < 0.2
    shape = Shape(
        partitions=random.choice((1, 1, 2)),
        workers=random.choice((1, 1, 2)),
        writers=random.choice((1, 1, 2)),
        window=random.choice((WINDOW, WINDOW, 8)),
        clumsy=random.choice((0.05, 0.2)) if late else random.choice((0.0, 0.0, 0.02, 0.1)),
        late=random.choice((5.0, 30.0)) if late else 0.0,
        seconds=random.uniform(1.0, 8.0),
    )
    kinds = [
        *["post"] * random.randint(1, 4),
        *random.choices(_FAULTS, k=random.randint(1, 4)),
        *random.choices(COMMANDS, k=random.randint(0, 2)),
    ]
    entries = [
        Entry(random.uniform(0.0, shape.seconds + 2.0 * (kind != "post")), kind, random.getrandbits(32))
        for kind in kinds
    ]
    return shape, sorted(entries, key=lambda entry: entry.at)
