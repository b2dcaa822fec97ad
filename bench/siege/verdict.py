"""What must hold of a siege. Pure."""

from collections.abc import Sequence
from statistics import median

from msgspec import Struct

from bench.chaos.proof import Claim
from bench.siege.honest import Window

MOST_SLOWER = 0.25
"""The part of its quiet p99 by which the honest project may become slower, beside the run's own noise."""
MOST_KEPT_MB = 32


class Delays(Struct, frozen=True):
    """The honest project's p99 in ms: quiet, its noise (the spread of quiet windows), and under attack."""

    quiet: float
    noise: float
    attacked: float

    @property
    def allowed(self) -> float:
        """The highest p99 under attack."""
        return self.quiet * (1 + MOST_SLOWER) + self.noise

    @property
    def hold(self) -> bool:
        """Whether the hostile token moved it by less than that."""
        return self.attacked < self.allowed


def delays(quiet: Sequence[Window], attacked: Sequence[Window]) -> Delays:
    """Medians over windows of one run."""
    before = [each.p99 * 1000 for each in quiet]
    return Delays(median(before), max(before) - min(before), median(each.p99 * 1000 for each in attacked))


def claims(
    windows: Sequence[Window], memory_mb: tuple[float, float], restarts: int, errors: int
) -> list[Claim]:
    """Everything but delays and exactness; `memory_mb` is of the edge before and a minute after, `errors` counts answers 500."""
    before, after = memory_mb
    return [
        Claim("honest requests refused or lost", 0, sum(sum(each.refused.values()) for each in windows)),
        Claim(
            f"MB beyond {MOST_KEPT_MB} that the edge kept", 0, max(0, round(after - before) - MOST_KEPT_MB)
        ),
        Claim("restarts of the edge", 0, restarts),
        Claim("answers 500 to the hostile token", 0, errors),
    ]
