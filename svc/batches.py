"""Which events travel together: at most 100, and one megabyte with their wrapper (protocol, section 8)."""

from collections.abc import Iterable, Iterator

from svc.limits import BATCH_EVENTS, BATCH_FRAME_BYTES, MAX_BODY_BYTES


def has_room(events: int, size: int, further: int) -> bool:
    """Whether an event of `further` bytes fits beside `events` events of `size` bytes together."""
    return events < BATCH_EVENTS and BATCH_FRAME_BYTES + size + events + further <= MAX_BODY_BYTES


def batches(events: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Encoded events in their order, in batches as full as they may be; one too large for any goes alone."""
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
