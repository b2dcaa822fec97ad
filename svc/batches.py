"""Batches of at most 100 events and, with their wrapper, one megabyte (protocol, section 8)."""

from collections.abc import Iterable, Iterator

from svc.limits import BATCH_EVENTS, BATCH_FRAME_BYTES, MAX_BODY_BYTES


def has_room(events: int, size: int, further: int) -> bool:
    """Whether a batch of `events` events with `size` bytes in total has room for `further` bytes."""
    return events < BATCH_EVENTS and BATCH_FRAME_BYTES + size + events + further <= MAX_BODY_BYTES


def batches(events: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Group encoded events, in order, into full batches; an event over the limit is alone in its batch."""
    batch: list[bytes] = []
    size = 0
    for event in events:
        if batch and not has_room(len(batch), size, len(event)):
            yield batch
            batch, size = [], 0
        batch.append(event)
        size += len(event)
    if batch:
        yield batch
