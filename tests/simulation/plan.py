"""What a seed stands for: what clients send, what operators do, what fails and when.

Everything is planned at the start, one entry after another with chances of its own, so that a part of a plan is a plan too.
"""

from random import Random
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tests.simulation.clickhouse_tables import WINDOW

PLACES: Final = tuple(
    f"at {place}"
    for place in (
        *(
            "spooling",
            "drain",
            "removal",
            "decision",
            "increments",
            "compaction",
            "restoring",
            "fold",
            "insert",
        ),
        *("second insert", "commit", "completion"),
    )
)
"""Where faults strike that wait for a process to come there: see `tests.simulation.aims`."""

_FAULTS: Final = (
    *("kill", "kill", "step", "step", "step", "freeze", "freeze", "cut", "broker", "broker", "clickhouse"),
    *("slow", "twin", "twin", "sleep", "clock", "full", "power", "bit", "compaction", "refusal"),
    *("part", "part", "part", "retention", "retention", "garbage"),
)
_STORIES: Final = (
    (("all", 0.0), ("merge", 1.5), ("post", 3.0), ("unmerge", 4.0), ("post", 5.0)),
    (("all", 0.0), ("merge", 1.5), ("merge", 2.5), ("post", 3.5), ("unmerge", 4.5)),
    (("all", 0.0), ("cross", 1.5), ("post", 2.0), ("unmerge", 4.0)),
    (("all", 0.0), ("resolve", 1.5), ("all", 3.0), ("post", 4.0)),
    (("all", 0.0), ("ignore", 1.5), ("all", 3.0), ("all", 4.0)),
    (("post", 0.0), ("broker", 0.5), ("at drain", 0.6), ("post", 0.8), ("post", 1.2)),
    (("post", 0.0), ("broker", 0.5), ("at removal", 0.6), ("post", 0.8)),
    (("post", 0.0), ("broker", 0.5), ("at spooling", 0.6), ("post", 0.8)),
    (("post", 0.0), ("clickhouse", 0.5), ("at completion", 0.6), ("post", 0.7)),
    (("post", 0.0), ("at second insert", 0.2), ("at insert", 0.4), ("post", 0.5), ("post", 2.0)),
    (("post", 0.0), ("lost", 2.5), ("post", 3.0)),
)
_DAYS: Final = (("post", 0.0), ("days", 0.5))
"""What belongs together, in this order: an entry alone would meet nothing."""
COMMANDS: Final = ("change", "change", "project", "repair", "replay", "erase", "rebuild")


CHANGES: Final = ("merge", "unmerge", "cross", "resolve", "ignore")
"""Changes of a certain kind, in stories."""


class Shape(Struct, frozen=True):
    """How large a schedule is, and how its servers are."""

    partitions: int
    workers: int
    writers: int
    window: int
    clumsy: float
    late: float
    seconds: float
    low: bool = False
    """Whether ids are forgotten after a day, and entries of `seen` are merged by twos."""
    is_mended: bool = True
    """Whether, before the check, refusals end and all dead letters are replayed."""


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
        low=random.random() < 0.3,
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
    if random.random() < 0.4:
        entries += _story(random, shape)
    elif random.random() < 0.3:
        entries.append(
            Entry(random.uniform(0.0, shape.seconds), random.choice(PLACES), random.getrandbits(32))
        )
    shape = replace(shape, is_mended=random.random() < 0.7)
    return shape, sorted(entries, key=lambda entry: entry.at)


def _story(random: Random, shape: Shape) -> list[Entry]:
    story = _DAYS if shape.low and random.random() < 0.5 else random.choice(_STORIES)
    at, pace = random.uniform(0.0, 1.0), random.choice((0.5, 1.0))
    return [
        Entry(at + pace * after + random.uniform(0.0, 0.3), what, random.getrandbits(32))
        for what, after in story
    ]
