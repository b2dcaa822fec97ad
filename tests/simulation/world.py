"""A machine whose time, processes and network are simulated: one thread, one seed, one order of events.

A *process* is a set of fibers (greenlets). The first runs an event loop, others run functions that the process gives to
executors. A fiber runs until it waits: for the time, or for an answer. Then the world takes the next entry of
its agenda, which is ordered by virtual time and, at equal times, by chance. So a seed determines every
interleaving, and a wait costs nothing.

A process can be killed or frozen at every step of its loop and at every request. Requests that it has sent by
then arrive nevertheless.
"""

import asyncio
import heapq
import random
from collections.abc import Callable
from itertools import count
from typing import Final, NamedTuple

from greenlet import GreenletExit, getcurrent, greenlet

EPOCH: Final = 1_790_000_000.0
"""Unix time at the start of a world."""
START: Final = 10_000.0
"""The monotonic clock's: nothing may depend on its beginning at 0."""
MAX_STEPS: Final = 400_000
"""Entries of the agenda: more show an endless wait."""


class Livelock(Exception):
    """The agenda has no end."""


class World:
    """The agenda, the clocks, and the random numbers."""

    def __init__(self, seed: int | str) -> None:
        self.random = random.Random(seed)
        self.now = START
        self.machine_skew = 0.0
        self.fiber: Fiber | None = None
        self.running: asyncio.AbstractEventLoop | None = None
        """The loop that asyncio takes for the running one."""
        self.processes: list[Process] = []
        self.log: list[str] = []
        self.steps = 0
        self.numbers = count()
        """For what needs a place in sets that is the same in each run."""
        self.is_over = False
        """Whether `run` ends."""
        self._agenda: list[tuple[float, float, int, Callable[[], None]]] = []
        self._count = 0
        self._hub = getcurrent()
        # A new greenlet costs as much as ten switches: schedules leave theirs to the next ones.
        self._idle: list[greenlet] = self._hub.__dict__.setdefault("idle", [])

    def note(self, text: str) -> None:
        """Add a line to the story of this world."""
        self.log.append(f"{self.now - START:9.3f}  {text}")

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        """Do something later."""
        self._count += 1
        heapq.heappush(self._agenda, (self.now + seconds, self.random.random(), self._count, action))

    def run(self) -> None:
        """Work through the agenda until `is_over`. Raises Livelock."""
        agenda, pop = self._agenda, heapq.heappop
        while not self.is_over:
            if not agenda:
                raise Livelock("nothing is left to do")
            self.steps += 1
            if self.steps > MAX_STEPS:
                raise Livelock(f"{MAX_STEPS} steps")
            self.now, _, _, action = pop(agenda)
            action()

    # Called by fibers.

    def sleep(self, seconds: float) -> None:
        """Let the current fiber wait."""
        fiber = self._current()
        self.after(seconds, fiber.resume)
        fiber.pause()

    def _current(self) -> "Fiber":
        if self.fiber is None:
            raise GreenletExit
        return self.fiber

    def greenlet(self) -> greenlet:
        """One that does the work which is passed with the next switch to it."""
        return self._idle.pop() if self._idle else greenlet(self._work, parent=self._hub)

    def _work(self, work: Callable[[], None]) -> None:
        idle, hub = self._idle, self._hub
        del self
        while True:
            work()
            idle.append(getcurrent())
            work = hub.switch()

    def set_running(self, loop: asyncio.AbstractEventLoop | None) -> None:
        """Tell asyncio which loop runs, which takes a system call."""
        if loop is not self.running:
            self.running = loop
            asyncio._set_running_loop(loop)

    def close(self) -> None:
        """Unwind every fiber: a call of the world in their `finally` clauses ends them."""
        for process in self.processes:
            process.close()
        self._agenda.clear()
        self.set_running(None)


class Fiber:
    """A thread of a process."""

    def __init__(self, process: "Process", work: Callable[[], None]) -> None:
        self.process = process
        self._work = work
        self._greenlet: greenlet | None = None
        """While it works."""
        self._waiting = False

    def start(self) -> None:
        """Let it run as soon as the world comes to it."""
        self._waiting = True
        self.process.world.after(0.0, self.resume)

    def _run(self) -> None:
        self.process.world.set_running(None)
        try:
            self._work()
        except GreenletExit:
            pass
        except BaseException as error:  # noqa: BLE001 - a process ends with any error of its code
            self.process.failed(error)
        finally:
            self._greenlet = None

    def pause(self) -> None:
        """Leave the turn to the world, until `resume`."""
        if self.process.is_closed:
            raise GreenletExit
        self._waiting = True
        world = self.process.world
        running = world.running
        world._hub.switch()
        if world.fiber is not self:
            raise GreenletExit
        world.set_running(running)

    def resume(self) -> None:
        """Go on, unless the process is dead or it is not waiting any more; a frozen one goes on once it is thawed."""
        process = self.process
        if not process.alive or not self._waiting:
            return
        if process.is_frozen:
            process.pending.append(self.resume)
            return
        self._waiting = False
        world = process.world
        world.fiber = self
        if self._greenlet is None:
            self._greenlet = world.greenlet()
            self._greenlet.switch(self._run)
        else:
            self._greenlet.switch()
        world.fiber = None

    def close(self) -> None:
        """Unwind it."""
        if self._greenlet is not None:
            self._greenlet.throw(GreenletExit)


class Silence(NamedTuple):
    """A time without heartbeats."""

    begin: float
    end: float


class Process:
    """A process of the product: `main` runs in its first fiber. `ended` is called once it has ended by itself."""

    def __init__(
        self,
        world: World,
        name: str,
        main: Callable[[], None],
        ended: Callable[["Process"], None] = lambda _: None,
    ) -> None:
        self.world = world
        self.name = name
        self.alive = True
        self.is_frozen = False
        self.is_closed = False
        self.was_killed = False
        self.has_slept = False
        """Whether its machine slept: clocks stood still meanwhile."""
        self.silences: list[Silence] = []
        self.on_silence: list[Callable[[], None]] = []
        self.error: BaseException | None = None
        self.pending: list[Callable[[], None]] = []
        self.fatal_in: int | None = None
        """Steps after which it is killed."""
        self.freeze_in: tuple[int, float] | None = None
        """Steps after which it is frozen, and for how long."""
        self._main = main
        self._ended = ended
        self._fibers: list[Fiber] = []
        world.processes.append(self)
        self.thread(self._life)

    def _life(self) -> None:
        self._main()
        self._end(None)

    def thread(self, work: Callable[[], None]) -> None:
        """Begin another fiber."""
        fiber = Fiber(self, work)
        self._fibers.append(fiber)
        fiber.start()

    def failed(self, error: BaseException) -> None:
        """End with an error."""
        if self.alive:
            self._end(error)

    def _end(self, error: BaseException | None) -> None:
        self.alive, self.error = False, error
        self.silent(float("inf"))
        self.world.note(f"{self.name} ends: {error!r}" if error is not None else f"{self.name} ends")
        self._ended(self)

    def step(self) -> None:
        """A point at which the process may be killed or frozen."""
        if self.fatal_in is not None:
            self.fatal_in -= 1
            if self.fatal_in <= 0:
                self.fatal_in = None
                self.kill()
        if self.freeze_in is not None:
            steps, seconds = self.freeze_in
            self.freeze_in = (steps - 1, seconds)
            if steps <= 1:
                self.freeze_in = None
                self.freeze(seconds)
        if self.alive and not self.is_frozen:
            return
        fiber = self.world.fiber
        if fiber is not None and fiber.process is self:
            if self.alive:
                self.pending.append(fiber.resume)
            fiber.pause()

    def kill(self) -> None:
        """`kill -9`."""
        if self.alive:
            self.alive, self.was_killed = False, True
            self.world.note(f"{self.name} is killed")
            self.silent(float("inf"))
            self._ended(self)

    def freeze(self, seconds: float) -> None:
        """SIGSTOP, and SIGCONT after some seconds. Clocks go on."""
        if not self.alive or self.is_frozen:
            return
        self.is_frozen = True
        self.world.note(f"{self.name} is frozen for {seconds:.1f} s")
        self.silent(seconds)
        self.world.after(seconds, self.thaw)

    def thaw(self) -> None:
        """Go on after `freeze`."""
        if self.is_frozen:
            self.is_frozen = False
            pending, self.pending = self.pending, []
            for action in pending:
                self.world.after(0.0, action)

    def silent(self, seconds: float) -> None:
        """It is silent for a time: frozen, cut off, or dead."""
        now = self.world.now
        self.silences.append(Silence(now, now + seconds))
        for notice in self.on_silence:
            notice()

    def is_silent(self, at: float) -> bool:
        """Whether it was silent at a time."""
        return bool(self.silences) and any(silence.begin <= at < silence.end for silence in self.silences)

    def close(self) -> None:
        """Unwind its fibers."""
        self.alive, self.is_closed = False, True
        for fiber in self._fibers:
            fiber.close()
        self._fibers.clear()
