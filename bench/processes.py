"""CPU and memory of processes on this machine, each with its descendants; and a process for the load."""

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress

import psutil

SPAWN = multiprocessing.get_context("spawn")


def family(pid: int) -> list[psutil.Process]:
    """A process and its descendants; none if it has ended."""
    with suppress(psutil.NoSuchProcess):
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    return []


def cpu_seconds(pid: int) -> float:
    """CPU seconds of a family."""
    return _total(pid, lambda process: sum(process.cpu_times()[:2]))


def resident_bytes(pid: int) -> float:
    """Resident memory of a family."""
    return _total(pid, lambda process: process.memory_info().rss)


def _total(pid: int, figure: Callable[[psutil.Process], float]) -> float:
    total = 0.0
    for process in family(pid):
        with suppress(psutil.NoSuchProcess):
            total += figure(process)
    return total


def elsewhere() -> ProcessPoolExecutor:
    """A process for the load, so that its CPU isn't counted as the server's."""
    return ProcessPoolExecutor(1, mp_context=SPAWN)
