"""The transport on a manual clock: timing and outcomes."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.answers import Answer
from svc.limits import BATCH_FRAME_BYTES, MAX_BODY_BYTES
from svc.notices import Notices
from svc.transport import Transport
from tests.unit.svc.fakes import ManualClock, ScriptedPoster


class NoThread(Transport):
    """A transport whose steps the test takes."""

    def _start(self) -> bool:
        return False


class Bench:
    """A transport with everything around it."""

    def __init__(self, *script: Answer, rest: Callable[[int], Answer] | None = None, **options: Any) -> None:
        self.clock = ManualClock()
        self.poster = ScriptedPoster(self.clock, *script, rest=rest)
        self.counts: Counter[str] = Counter()
        self.transport = NoThread(self.poster, self.counts, Notices(), clock=self.clock, **options)
        self.began = self.clock.now()

    def submit(self, count: int, size: int = 100) -> None:
        for n in range(count):
            self.transport.submit(f"id{n}", b"x" * size)

    def run_until_idle(self) -> None:
        """Step, and let the time pass that a step says nothing is due in."""
        for _ in range(1_000):
            wait = self.transport.step()
            if wait is None:
                return
            self.clock.pass_time(wait)
        raise AssertionError("still something to do")

    @property
    def posted(self) -> list[int]:
        return [len(batch) for batch in self.poster.batches]

    @property
    def times(self) -> list[float]:
        return [time - self.began for time in self.poster.times]


def test_event_waits_for_the_interval() -> None:
    bench = Bench(interval=2.0)
    bench.submit(3)
    assert bench.transport.step() == 2.0
    assert bench.posted == []
    bench.clock.pass_time(2.0)
    bench.transport.step()
    assert bench.posted == [3]
    assert bench.counts["sent"] == 3
    assert bench.transport.step() is None


def test_full_batch_does_not_wait() -> None:
    bench = Bench(interval=60)
    bench.submit(250)
    bench.transport.step()
    bench.transport.step()
    assert bench.posted == [100, 100]
    assert bench.transport.step() == 60


def test_batch_holds_a_megabyte_with_its_wrapper() -> None:
    bench = Bench()
    bench.submit(30, size=100_000)
    bench.run_until_idle()
    assert bench.posted == [10, 10, 10]
    for batch in bench.poster.batches:
        assert BATCH_FRAME_BYTES + sum(map(len, batch)) + len(batch) - 1 <= MAX_BODY_BYTES


def test_flush_sends_immediately() -> None:
    bench = Bench(interval=60)
    bench.submit(2)
    assert bench.transport.flush(1.0) is True
    assert bench.posted == [2]
    assert bench.times == [0.0]
    assert bench.clock.slept == []
    assert bench.poster.timeouts == [1.0]


def test_flush_gives_up_at_its_deadline() -> None:
    bench = Bench(rest=lambda _: Answer(0), interval=60)
    bench.submit(2)
    assert bench.transport.flush(2.5) is False
    assert bench.times == [0.0, 1.0]
    assert bench.clock.now() - bench.began == pytest.approx(2.5)


def test_batch_that_gets_through_at_last_is_the_same_batch() -> None:
    bench = Bench(Answer(500), Answer(0), interval=0)
    bench.submit(2)
    bench.transport.step()
    bench.submit(3)
    bench.run_until_idle()
    assert bench.posted == [2, 2, 2, 3]
    assert bench.poster.batches[0] == bench.poster.batches[2]
    assert bench.counts["sent"] == 5


@pytest.mark.parametrize("status", [400, 401, 413])
def test_refused_batch_is_dropped_and_the_next_one_sent(status: int) -> None:
    bench = Bench(Answer(status), interval=0)
    bench.submit(150)
    bench.run_until_idle()
    assert bench.posted == [100, 50]
    assert (bench.counts["dropped.refused"], bench.counts["sent"]) == (100, 50)


def test_rejected_events_are_passed_to_the_callback_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    rejected_batches: list[list[dict[str, Any]]] = []

    def on_rejected(rejected: list[dict[str, Any]]) -> None:
        rejected_batches.append(rejected)
        raise RuntimeError("the callback's own fault")

    error = {
        "index": 1,
        "error": "validationFailed",
        "details": [{"field": "release", "message": "required"}],
    }
    partial = Answer(202, accepted=2, errors=(error,))
    bench = Bench(partial, partial, interval=0, on_rejected=on_rejected)
    for _ in range(2):
        bench.submit(3)
        bench.run_until_idle()
    assert rejected_batches == [[{"id": "id1", **error}], [{"id": "id1", **error}]]
    assert (bench.counts["sent"], bench.counts["rejected"], bench.counts["retries"]) == (4, 2, 0)
    assert len([r for r in caplog.records if "rejected events" in r.getMessage()]) == 1


def test_full_queue_drops_the_newest_and_counts_them() -> None:
    bench = Bench(max_events=10, interval=0)
    bench.submit(25)
    bench.run_until_idle()
    assert (bench.counts["sent"], bench.counts["dropped.queueFull"]) == (10, 15)


def test_queue_is_bounded_in_bytes_too() -> None:
    bench = Bench(max_bytes=1_000, interval=0)
    bench.submit(5, size=300)
    bench.run_until_idle()
    assert (bench.counts["sent"], bench.counts["dropped.queueFull"]) == (3, 2)


def test_event_that_cannot_be_built_costs_only_itself() -> None:
    def broken() -> bytes:
        raise RuntimeError("broken")

    bench = Bench(interval=0)
    bench.transport.submit("a", b"{}")
    bench.transport.submit("b", broken)
    bench.transport.submit("c", lambda: None)
    bench.transport.submit("d", lambda: b"{}")
    bench.run_until_idle()
    assert bench.poster.batches == [[b"{}", b"{}"]]
    assert bench.counts["dropped.unsendable"] == 1
    assert bench.transport.flush(1.0) is True


def test_after_close_events_are_counted_and_dropped() -> None:
    bench = Bench()
    bench.submit(1)
    assert bench.transport.close(1.0) is True
    assert bench.transport.submit("late", b"{}") is False
    assert (bench.counts["sent"], bench.counts["dropped.closed"]) == (1, 1)


def test_close_counts_the_unsent_events() -> None:
    bench = Bench(rest=lambda _: Answer(500))
    bench.submit(7)
    assert bench.transport.close(0.5) is False
    assert bench.counts["dropped.closed"] == 7


def test_error_of_the_library_costs_a_batch_not_the_program() -> None:
    class Broken(ScriptedPoster):
        def post(self, events: Any, timeout: float | None = None) -> Answer:
            super().post(events, timeout)
            raise ZeroDivisionError

    bench = Bench(interval=0)
    bench.poster = bench.transport._pipeline._poster = Broken(bench.clock)
    bench.submit(3)
    assert bench.transport.flush(10) is True
    assert bench.counts["dropped.fault"] == 3


answers = st.one_of(
    st.builds(Answer, st.sampled_from([0, 500, 503]), wait=st.sampled_from([0.0, 0.5, 9.0])),
    st.builds(Answer, st.just(429), wait=st.floats(0, 100)),
    st.builds(Answer, st.sampled_from([400, 401, 413])),
    st.just(Answer(202, accepted=0, errors=tuple({"index": n, "error": "x"} for n in range(100)))),
)


@given(st.lists(answers, max_size=40), st.lists(st.integers(0, 120), max_size=6))
def test_with_any_answers_each_event_meets_one_fate_and_no_wait_is_cut_short(
    script: list[Answer], arrivals: list[int]
) -> None:
    bench = Bench(*script, max_events=400, interval=0.5)
    for count in arrivals:
        bench.submit(count)
        bench.run_until_idle()
    counts = bench.counts
    rejected_batches = [len(b) for b, a in zip(bench.poster.batches, script, strict=False) if a.errors]
    outcomes = counts["sent"] + sum(rejected_batches)
    outcomes += sum(events for reason, events in counts.items() if reason.startswith("dropped."))
    assert outcomes == sum(arrivals)
    posts = list(zip(bench.poster.times, script, strict=False))
    for (began, answer), later in zip(posts, bench.poster.times[1:], strict=False):
        if answer.status == 429:
            assert later >= began + max(1.0, answer.wait)
    assert all(1 <= len(batch) <= 100 for batch in bench.poster.batches)
