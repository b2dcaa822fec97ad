"""Limits the cost of grouping rules within one record of `events`, by project. Pure.

A record may be decided again, by another worker and within another batch. So the budget starts again with
each record, is counted in steps instead of time, and knows nothing of caches that a worker may have.
"""

from collections import Counter
from collections.abc import Hashable

from grouping.steps import EVENT_STEPS, MAX_STEPS
from schemas.chunks import ChunkEvent
from schemas.times import MINUTE_MS

SkippedRule = tuple[int, int, str, str]
"""A grouping rule that was skipped on events.

Project, minute of receipt, `tooExpensive` or `failed`, and the rule's name."""


class RuleBudget:
    """The steps that each project's rules have left within a record.

    `skipped` has the rules that were skipped, with numbers of events.
    """

    def __init__(self) -> None:
        self.skipped: Counter[SkippedRule] = Counter()
        self._left: dict[int, int] = {}
        self._paid: set[Hashable] = set()

    def next_event(self, project: int) -> int:
        """The steps for the next event of a project: the rest of the budget, and EVENT_STEPS."""
        left = self._left[project] = min(
            self._left.get(project, MAX_STEPS - EVENT_STEPS) + EVENT_STEPS, MAX_STEPS
        )
        return left

    def spend(self, project: int, steps: int) -> None:
        """Spend steps."""
        self._left[project] -= steps

    def skip(self, event: ChunkEvent, kind: str, rule: str) -> None:
        """Count a rule that was skipped on an event."""
        self.skipped[event.project, event.received_ms // MINUTE_MS, kind, rule] += 1

    def is_paid(self, work: Hashable) -> bool:
        """Whether work whose result is remembered was paid for within this record."""
        return work in self._paid

    def pay(self, work: Hashable) -> None:
        """Remember that work is paid for."""
        self._paid.add(work)
