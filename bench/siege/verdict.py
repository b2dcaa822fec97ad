"""The conditions of a successful siege. No I/O."""

from collections.abc import Sequence
from statistics import median

from msgspec import Struct

from bench.report import Claim
from bench.siege.honest import Window

MAX_SLOWDOWN = 0.25
"""Tolerated slowdown of the honest project, as a share of its undisturbed p99, in addition to the run's noise."""
LATE_SECONDS = 30
"""Far beyond the delays of a busy machine: floods that stopped the pipeline or the dashboard did so for minutes."""
MAX_RETAINED_MB = 32
MAX_ATTACKED_MB = 256


class Delays(Struct, frozen=True):
    """The honest project's p99 in ms: undisturbed, its noise (the spread over windows), and under attack."""

    quiet: float
    noise: float
    attacked: float

    @property
    def allowed(self) -> float:
        """The highest allowed p99 under attack."""
        return self.quiet * (1 + MAX_SLOWDOWN) + self.noise

    @property
    def hold(self) -> bool:
        """Whether the p99 under attack is below the limit."""
        return self.attacked < self.allowed


def delays(quiet: Sequence[Window], attacked: Sequence[Window]) -> Delays:
    """Medians over windows of one run."""
    before = [sample.p99 * 1000 for sample in quiet]
    return Delays(median(before), max(before) - min(before), median(sample.p99 * 1000 for sample in attacked))


def claims(
    windows: Sequence[Window],
    memory_mb: tuple[float, float, float],
    restarts: int,
    errors: int,
) -> list[Claim]:
    """The claims, except delays and exactness.

    `memory_mb` is the edge's before, under attack and a minute after, `errors` counts answers 500.
    """
    before, attacked, after = memory_mb
    return [
        Claim("honest requests refused or lost", 0, sum(sum(sample.refused.values()) for sample in windows)),
        Claim(
            f"MB taken by the edge under attack beyond {MAX_ATTACKED_MB}",
            0,
            max(0, round(attacked - before) - MAX_ATTACKED_MB),
        ),
        Claim(
            f"MB retained by the edge beyond {MAX_RETAINED_MB}",
            0,
            max(0, round(after - before) - MAX_RETAINED_MB),
        ),
        Claim("restarts of a process", 0, restarts),
        Claim(
            f"windows whose last event could not be queried {LATE_SECONDS} s later",
            0,
            sum(sample.behind > LATE_SECONDS for sample in windows),
        ),
        Claim(
            f"windows in which an answer of the dashboard failed or took {LATE_SECONDS} s",
            0,
            sum(max(sample.pages, default=0) > LATE_SECONDS for sample in windows),
        ),
        Claim("answers 500 to the hostile token", 0, errors),
    ]
