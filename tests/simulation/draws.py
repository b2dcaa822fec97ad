"""Which schedules a run takes next: half of them are chosen by the least reached blocks.

The coverage of a schedule are the blocks of the product's statements that it meets (`tests.simulation.probes`) and
the names of `tests.simulation.aims`. Of four seeds one is a number as it comes, one varies a seed that was among the
first to reach something, and two give a number a story: each in turn, and the one whose aim is seldom reached.

The same first number draws the same seeds, and each seed repeats alone.
"""

from collections import Counter
from collections.abc import Iterable
from itertools import cycle
from random import Random
from typing import Final

from tests.simulation.plan import STORIES, Seed, varied, with_story

Reached = frozenset[int | str]
_KEPT: Final = 4
"""Seeds that are kept for each block."""
_STEPS: Final = 5
"""Most steps of a seed that is varied."""


class Draws:
    """The seeds of a run."""

    def __init__(self, first: int) -> None:
        self._next = first
        self._random = Random(first)
        self.counts: Counter[int | str] = Counter()
        """In how many schedules each was reached."""
        self._first: dict[int | str, list[Seed]] = {}
        self._stories = cycle(range(len(STORIES)))
        self._aims: dict[int, int | str] = {}
        """The least reached of all blocks that a story's schedules reach."""

    def take(self, count: int) -> list[Seed]:
        """That many seeds. Add their coverage before you take more."""
        known = list(self._first)
        seldom = [1 / self.counts[block] for block in known]
        aims = [1 / self.counts[self._aims[n]] if n in self._aims else 1.0 for n in range(len(STORIES))]
        return [self._one(number % 4, known, seldom, aims) for number in range(count)]

    def _one(self, turn: int, known: list[int | str], seldom: list[float], aims: list[float]) -> Seed:
        random = self._random
        if turn == 1 and known:
            [block] = random.choices(known, seldom)
            return varied(random.choice(self._first[block]), random)
        seed, self._next = self._next, self._next + 1
        match turn:
            case 2:
                return with_story(seed, next(self._stories))
            case 3:
                return with_story(seed, random.choices(range(len(STORIES)), aims)[0])
        return seed

    def add(self, seed: Seed, reached: Iterable[int | str]) -> None:
        """The coverage of a schedule, one after the other in the order of `take`."""
        blocks = sorted(reached, key=str)
        self.counts.update(blocks)
        steps = [int(step) for step in str(seed).split(".")[1:]]
        if len(steps) < _STEPS:
            for block in blocks:
                if len(kept := self._first.setdefault(block, [])) < _KEPT:
                    kept.append(seed)
        for number in steps:
            if number < len(STORIES) and blocks:
                before = [self._aims[number]] if number in self._aims else []
                self._aims[number] = min([*blocks, *before], key=self.counts.__getitem__)
