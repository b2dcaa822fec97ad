"""Memory held by objects after they were sent."""

import gc
import tracemalloc
from collections.abc import Callable

TIMES = 100


def kept_bytes(look: Callable[[int], object]) -> int:
    """Bytes that are held after `look` has been called with a hundred numbers."""
    tracemalloc.start()
    try:
        gc.collect()
        before, _ = tracemalloc.get_traced_memory()
        for number in range(TIMES):
            look(number)
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return after - before
