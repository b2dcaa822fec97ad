"""Which schedules a run takes next: half as the numbers come, the others by what was seldom reached so far.

What a schedule reaches are the places of the product that it meets (`tests.simulation.probes`) and the names of
`tests.simulation.aims`. Of the other half, one half gives a new number a story, and one varies a seed that was
among the first to reach something.

The same first number draws the same seeds, and each seed repeats alone.
"""

from collections import Counter
from collections.abc import Iterable
from random import Random
from typing import Final

from tests.simulation.plan import STORIES, Seed, varied, with_story

Reached = frozenset[int | str]
_KEPT: Final = 4
"""Seeds that are kept for each place."""
_STEPS: Final = 5
"""Most steps of a seed that is varied."""


class Draws:
    """The seeds of a run."""

    def __init__(self, first: int) -> None:
        self._next = first
        self._random = Random(first)
        self.counts: Counter[int | str] = Counter()
        """In how many schedules each place was reached."""
        self._first: dict[int | str, list[Seed]] = {}
        self._aims: dict[int, int | str] = {}
        """What was reached least of all that a story's schedules reach."""

    def take(self, count: int) -> list[Seed]:
        """So many seeds. What they reach is wanted before the next ones."""
        places = list(self._first)
        seldom = [1 / self.counts[place] for place in places]
        aims = [1 / self.counts[self._aims[n]] if n in self._aims else 1.0 for n in range(len(STORIES))]
        return [self._one(number % 4, places, seldom, aims) for number in range(count)]

    def _one(self, turn: int, places: list[int | str], seldom: list[float], aims: list[float]) -> Seed:
        random = self._random
        if turn == 1 and places:
            [place] = random.choices(places, seldom)
            return varied(random.choice(self._first[place]), random)
        seed, self._next = self._next, self._next + 1
        if turn == 3:
            [number] = random.choices(range(len(STORIES)), aims)
            return with_story(seed, number)
        return seed

    def add(self, seed: Seed, reached: Iterable[int | str]) -> None:
        """What a schedule has reached, one after the other in the order of `take`."""
        places = sorted(reached, key=str)
        self.counts.update(places)
        steps = [int(step) for step in str(seed).split(".")[1:]]
        if len(steps) < _STEPS:
            for place in places:
                if len(kept := self._first.setdefault(place, [])) < _KEPT:
                    kept.append(seed)
        for number in steps:
            if number < len(STORIES) and places:
                known = [self._aims[number]] if number in self._aims else []
                self._aims[number] = min([*places, *known], key=self.counts.__getitem__)
