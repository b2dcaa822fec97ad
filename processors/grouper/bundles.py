"""Increments on their way: one record a take and target partition, in which each names its own source record."""

from collections.abc import Iterable
from typing import Final

from schemas.increments import Increment, SourceIncrements, encode_source, join

MAX_BYTES: Final = 1 << 20
MAX_TOGETHER: Final = 200
"""Increments that are encoded together: bounds a piece to well below `MAX_BYTES`."""


def bundles(sources: Iterable[SourceIncrements], partitions: int) -> dict[int, list[bytes]]:
    """Values of `issue-deltas` by target partition, in the order of their sources."""
    pieces: dict[int, list[bytes]] = {}
    for source in sources:
        for target, increments in _by_target(source.increments, partitions).items():
            found = pieces.setdefault(target, [])
            for start in range(0, len(increments), MAX_TOGETHER):
                some = increments[start : start + MAX_TOGETHER]
                found.append(encode_source(SourceIncrements(source.partition, source.offset, some)))
    return {target: list(_joined(found)) for target, found in pieces.items()}


def _by_target(increments: list[Increment], partitions: int) -> dict[int, list[Increment]]:
    found: dict[int, list[Increment]] = {}
    for increment in increments:
        target = increment.issue % partitions
        some = found.get(target)
        if some is None:
            found[target] = [increment]
        else:
            some.append(increment)
    return found


def _joined(pieces: list[bytes]) -> Iterable[bytes]:
    """The pieces as few values of bounded size."""
    start = size = 0
    for end, piece in enumerate(pieces):
        if size and size + len(piece) > MAX_BYTES:
            yield join(pieces[start:end])
            start, size = end, 0
        size += len(piece)
    if size:
        yield join(pieces[start:])
