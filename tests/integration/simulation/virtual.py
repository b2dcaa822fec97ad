"""A history in virtual time: the only process of a world, on the models."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from tests.simulation.virtual_time import VirtualLoop, clocks_of
from tests.simulation.world import Process, World

T = TypeVar("T")


def in_fiber(world: World, work: Callable[[], T]) -> T:
    """Run blocking work as a process of a world. Raises its errors."""
    results: list[T] = []

    def ended(_: Process) -> None:
        world.is_over = True

    process = Process(world, "history", lambda: results.append(work()), ended)
    try:
        with clocks_of(world):
            world.run()
    finally:
        world.close()
        asyncio.set_event_loop(None)
    if process.error is not None:
        raise process.error
    return results[0]


def in_loop(world: World, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine as a process of a world. Raises its errors."""

    def main() -> T:
        loop = VirtualLoop(world)
        asyncio.set_event_loop(loop)
        try:
            return loop.run_until_complete(work())
        finally:
            loop.close()

    return in_fiber(world, main)
