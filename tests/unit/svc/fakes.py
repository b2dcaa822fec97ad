"""A manual clock and a scripted poster for tests of the transport."""

from collections import deque
from collections.abc import Callable, Sequence

from svc.answers import Answer


class ManualClock:
    """Seconds that pass only by `pass_time` and by sleeping."""

    def __init__(self) -> None:
        self.seconds = 1_000.0
        self.slept: list[float] = []

    def now(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.seconds += seconds

    def pass_time(self, seconds: float) -> None:
        self.seconds += seconds


class ScriptedPoster:
    """Takes batches; answers from the script, then for ever as `rest` says."""

    url = "http://ingest.test"

    def __init__(
        self, clock: ManualClock, *script: Answer, rest: Callable[[int], Answer] | None = None
    ) -> None:
        self._clock = clock
        self._script = deque(script)
        self._rest = rest or (lambda events: Answer(202, accepted=events))
        self.batches: list[list[bytes]] = []
        self.times: list[float] = []
        self.timeouts: list[float | None] = []

    def post(self, events: Sequence[bytes], timeout: float | None = None) -> Answer:
        self.batches.append(list(events))
        self.times.append(self._clock.now())
        self.timeouts.append(timeout)
        return self._script.popleft() if self._script else self._rest(len(events))

    def close(self) -> None:
        pass

    def after_fork(self) -> None:
        pass
