"""The seeds that have broken a promise, each with the plan that it had then.

A later generator of plans makes another plan of the same seed.
"""

from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from tests.simulation.plan import Entry, Plan, Seed, Shape, plan, seeded, step

_FILE: Final = Path(__file__).with_name("kept.json")


class Kept(Struct, frozen=True):
    """A seed, the promise that it broke, and its plan."""

    seed: Seed
    broke: str
    shape: Shape
    entries: list[Entry]


def kept() -> dict[Seed, Kept]:
    """All, by their seeds."""
    return {one.seed: one for one in msgspec.json.decode(_FILE.read_bytes(), type=list[Kept])}


def plan_of(seed: Seed) -> Plan:
    """The kept plan of a seed, else the generated one."""
    if known := _KEPT.get(seed):
        return known.shape, known.entries
    if isinstance(seed, int):
        return plan(seed)
    return step(plan_of(seeded(seed.rpartition(".")[0])), seed)


def keep(seed: Seed, broke: str) -> None:
    """Keep a seed with its plan."""
    every = kept() | {seed: Kept(seed, broke, *plan_of(seed))}
    lines = [msgspec.json.encode(every[seed]).decode() for seed in sorted(every, key=str)]
    _FILE.write_text("[\n" + ",\n".join(lines) + "\n]\n")


_KEPT: Final = kept()
