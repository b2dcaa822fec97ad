"""A full disk as a process meets it: no file may grow beyond a size.

Only for processes that the test itself has started.
"""

import multiprocessing
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

Answer = TypeVar("Answer")


@contextmanager
def files_end_at(size: int) -> Iterator[None]:
    """A write across `size` is cut short there, one beyond it is an OSError."""
    before, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (before, most))


def in_a_process(work: Callable[..., Answer], *given: Any) -> Answer:
    """The result of `work`, a function of a module, in a separate process."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(work, given)
