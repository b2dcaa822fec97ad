"""The errors with which a process may end; any other shows that a schedule was survived by chance."""

from collections.abc import Iterator
from typing import Final

from broker.errors import KafkaError, PartitionsLost
from processors.positions import OffsetGap
from tests.simulation.world import Process

_MAY: Final[dict[str, tuple[type[BaseException], ...]]] = {
    "edge": (),
    # Kafka was away for too long, another worker has the partitions, or a batch in progress did not end in time.
    "processors": (KafkaError, PartitionsLost, TimeoutError),
    "writer": (),
}
"""By process: after these it starts again and goes on."""


class BadEnd(Exception):
    """A process has ended with an error that nothing explains."""


def bad_ends_of(process: Process, *, logs_expired: bool = False) -> Iterator[str]:
    """The errors with which a process has ended by itself, and may not.

    Where logs have expired, a process that got a partition back may miss records that another owner has read:
    it starts again behind them.
    """
    name = process.name.partition("-")[0]
    for error in _single(process.error) if process.error is not None else ():
        is_behind = logs_expired and name == "processors" and isinstance(error, OffsetGap)
        if not isinstance(error, _MAY[name]) and not is_behind:
            yield f"{name} has ended: {error!r}"


def check_ends(bad: list[str]) -> None:
    """Raise BadEnd if there was one."""
    if bad:
        raise BadEnd(bad[0])


def _single(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _single(inner)
    else:
        yield error
