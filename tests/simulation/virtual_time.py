"""asyncio's loop and Python's clocks in the time of a world."""

import asyncio
import heapq
import math
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import Context, copy_context
from functools import partial
from typing import Any, Self

from greenlet import GreenletExit
from msgspec import Struct

from tests.simulation.world import EPOCH, START, World


class Handle(Struct):
    """A handle as asyncio's, without the parts for debugging: millions are made."""

    callback: Callable[..., object]
    args: tuple[Any, ...]
    context: Context
    when: float = 0.0
    is_cancelled: bool = False

    def __lt__(self, other: Self) -> bool:
        return self.when < other.when

    def cancel(self) -> None:
        """Don't call it."""
        self.is_cancelled = True
        self.args = ()


class NumberedTask(asyncio.Task[Any]):
    """A task whose place in a set follows from its number: its address differs from one Python process to the next.

    Futures have none: a subclass costs the loop a tenth of its time, and no set of them is gone through.
    """

    def __hash__(self) -> int:
        return _number(self, self._loop._world)  # type: ignore[attr-defined]


def _number(thing: Any, world: World) -> int:
    if not hasattr(thing, "number"):
        thing.number = next(world.numbers)
    return int(thing.number)


class VirtualLoop(asyncio.BaseEventLoop):
    """asyncio's own loop with the world's clock. It belongs to the process that creates it."""

    get_debug = bool
    """False, said without a call of Python's: each future asks."""

    def __init__(self, world: World) -> None:
        super().__init__()
        fiber = world._current()
        self._world = world
        self._process = fiber.process
        self._fiber = fiber
        self._asleep = False
        self._alarm = math.inf
        """The next time at which the world wakes it."""
        self._timers: list[Handle] = []
        self._tasks: list[asyncio.Task[Any]] = []
        self._lanes: dict[Any, deque[Callable[[], None]]] = {}

    def time(self) -> float:
        """The world's clock."""
        return self._world.now

    def run_forever(self) -> None:
        """Run until stopped."""
        if self._process.is_closed:
            raise GreenletExit
        self._world.set_running(self)
        try:
            while True:
                self._run_once()
                if self._stopping:  # type: ignore[has-type]
                    break
        finally:
            self._stopping = False
            self._world.set_running(None)

    def _run_once(self) -> None:
        """As asyncio's, with the world in the place of a selector."""
        timers: list[Handle] = self._timers
        ready: deque[Handle] = self._ready  # type: ignore[attr-defined]
        while timers and timers[0].is_cancelled:
            heapq.heappop(timers)
        self._process.step()
        if not ready and not self._stopping:
            self._sleep(timers[0].when if timers else None)
        now = self._world.now
        while timers and timers[0].when <= now:
            ready.append(heapq.heappop(timers))
        for _ in range(len(ready)):
            handle = ready.popleft()
            if not handle.is_cancelled:
                try:
                    handle.context.run(handle.callback, *handle.args)
                except (SystemExit, KeyboardInterrupt):
                    raise
                except BaseException as error:  # noqa: BLE001 - as asyncio's
                    message = f"exception in {handle.callback}"
                    self.call_exception_handler({"message": message, "exception": error})

    def call_soon(self, callback: Any, *args: Any, context: Any = None) -> Any:  # type: ignore[override]
        """As asyncio's, without its checks."""
        handle = Handle(callback, args, context or copy_context())
        self._ready.append(handle)  # type: ignore[attr-defined]
        return handle

    def call_at(self, when: float, callback: Any, *args: Any, context: Any = None) -> Any:  # type: ignore[override]
        """As asyncio's, without its checks."""
        timer = Handle(callback, args, context or copy_context(), when)
        heapq.heappush(self._timers, timer)
        return timer

    def call_later(self, delay: float, callback: Any, *args: Any, context: Any = None) -> Any:  # type: ignore[override]
        """As asyncio's."""
        return self.call_at(self._world.now + delay, callback, *args, context=context)

    def create_task(  # type: ignore[override]
        self, coro: Any, *, name: str | None = None, context: Any = None
    ) -> asyncio.Task[Any]:
        """As asyncio's; it is remembered for `tasks_of`."""
        task = NumberedTask(coro, loop=self, name=name, context=context)
        self._tasks.append(task)
        return task

    def create_future(self) -> asyncio.Future[Any]:
        """As asyncio's."""
        return asyncio.Future(loop=self)

    def _sleep(self, until: float | None) -> None:
        """Let the world go on until a time, or until something comes in."""
        if until is not None:
            self._set_alarm(until)
        self._asleep = True
        self._fiber.pause()
        self._asleep = False

    def _set_alarm(self, at: float) -> None:
        if at < self._alarm:
            self._alarm = at
            self._world.after(max(0.0, at - self._world.now), partial(self._ring, at))

    def _ring(self, at: float) -> None:
        """A time has come. That of a timer which was cancelled meanwhile is none."""
        if at == self._alarm:
            self._alarm = math.inf
        self._wake()

    def _wake(self) -> None:
        if not self._asleep:
            return
        timers = self._timers
        while timers and timers[0].is_cancelled:
            heapq.heappop(timers)
        if self._ready or (timers and timers[0].when <= self._world.now):  # type: ignore[attr-defined]
            self._fiber.resume()
        elif timers:
            self._set_alarm(timers[0].when)

    def deliver(self, callback: Callable[..., object], *args: Any) -> None:
        """Call a function in the loop, from the network or a thread. Nothing comes in to a dead process."""
        if not self._process.alive or self.is_closed():
            return
        if self._process.is_frozen:
            self._process.pending.append(lambda: self.deliver(callback, *args))
            return
        self.call_soon(callback, *args)
        if self._asleep:
            if self._world.fiber is None:
                self._fiber.resume()
            else:
                self._world.after(0.0, self._wake)

    def call_soon_threadsafe(self, callback: Any, *args: Any, context: Any = None) -> Any:  # type: ignore[override]
        """As `call_soon`, and wake the loop."""
        handle = self.call_soon(callback, *args, context=context)
        if self._asleep:
            self._world.after(0.0, self._wake)
        return handle

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> Any:  # type: ignore[override]
        """Run a function in a new fiber; those of one executor run one after the other."""
        future = self.create_future()
        lane = self._lanes.setdefault(executor, deque()) if executor is not None else deque()

        def settle(result: Any, error: BaseException | None) -> None:
            if future.cancelled():
                return
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)

        def work() -> None:
            try:
                result = func(*args)
            except GreenletExit:
                raise
            except BaseException as error:  # noqa: BLE001 - passed to the loop
                self.deliver(settle, None, error)
            else:
                self.deliver(settle, result, None)
            lane.popleft()
            if lane:
                self._process.thread(lane[0])

        lane.append(work)
        if len(lane) == 1:
            self._process.thread(work)
        return future

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """There is none."""

    def _process_events(self, event_list: Any) -> None:
        """There are none."""

    def _write_to_self(self) -> None:
        """Nothing sleeps in the kernel."""

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Only a living process complains."""
        if self._process.alive:
            self._world.note(f"{self._process.name}: {context.get('message')}: {context.get('exception')!r}")


def tasks_of(loop: VirtualLoop) -> set[asyncio.Task[Any]]:
    """As `asyncio.all_tasks`, which looks through those of all loops, also of dead ones."""
    return {task for task in loop._tasks if not task.done()}


def _forget(_: Any) -> None:
    """Instead of a weak reference for each task."""


class _Policy(asyncio.DefaultEventLoopPolicy):
    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world

    def new_event_loop(self) -> asyncio.AbstractEventLoop:
        return VirtualLoop(self._world)


@contextmanager
def clocks_of(world: World) -> Iterator[None]:
    """Let Python's clocks, and new event loops, be those of a world."""
    real = {name: getattr(time, name) for name in ("time", "monotonic", "perf_counter", "time_ns", "sleep")}
    before = asyncio.get_event_loop_policy()
    all_tasks = asyncio.tasks.all_tasks

    def wall() -> float:
        return EPOCH + world.now - START + world.machine_skew

    time.time = wall
    time.time_ns = lambda: int(wall() * 1e9)
    time.monotonic = time.perf_counter = lambda: world.now
    setattr(time, "sleep", world.sleep)  # noqa: B010 - not of its type
    asyncio.set_event_loop_policy(_Policy(world))
    setattr(asyncio.tasks, "all_tasks", tasks_of)  # noqa: B010 - not of its type
    # Nor are they remembered for it.
    all_tasks_ever = getattr(asyncio.tasks, "_all_tasks")  # noqa: B009 - not of its type
    all_tasks_ever.add = _forget
    setattr(asyncio.Timeout, "__hash__", lambda timeout: _number(timeout, world))  # noqa: B010 - as `NumberedTask`
    try:
        yield
    finally:
        setattr(asyncio.Timeout, "__hash__", object.__hash__)  # noqa: B010
        for name, function in real.items():
            setattr(time, name, function)
        setattr(asyncio.tasks, "all_tasks", all_tasks)  # noqa: B010
        del all_tasks_ever.add
        asyncio.set_event_loop_policy(before)
