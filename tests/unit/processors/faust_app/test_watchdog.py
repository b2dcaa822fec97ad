import os
import subprocess
import sys
import time
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
from faust.types import TP
from prometheus_client import CollectorRegistry

from processors.faust_app import watchdog as module
from processors.faust_app import worker
from processors.faust_app.watchdog import GAP_SECONDS, Stalled, Watchdog, ends_if_blocked
from processors.processors_metrics import ProcessorsMetrics
from schemas.topics import Topic


def test_work_that_waits_without_progress_is_noticed() -> None:
    watchdog = Watchdog()
    watchdog.check("events/0", 5, waiting=True, seconds=-1)
    with pytest.raises(Stalled, match="events/0"):
        watchdog.check("events/0", 5, waiting=True, seconds=-1)


def test_a_stall_is_counted_from_when_work_came() -> None:
    watchdog = Watchdog()
    watchdog.check("events/0", 5, waiting=False, seconds=60)
    watchdog.check("events/0", 5, waiting=True, seconds=60)


def test_a_pause_while_partitions_are_reassigned_is_no_stall_afterwards() -> None:
    watchdog = Watchdog()
    watchdog.check("events/0", 5, waiting=True, seconds=-1)
    watchdog.only("recovery")
    watchdog.check("events/0", 5, waiting=True, seconds=-1)


def test_time_without_checks_is_no_stall(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop was blocked, or the process frozen: the watched work could not go on either."""
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    watchdog = Watchdog()
    watchdog.check("events/0", 5, waiting=True, seconds=60)
    now += 172
    watchdog.check("events/0", 5, waiting=True, seconds=60)
    for _ in range(11):
        now += GAP_SECONDS
        watchdog.check("events/0", 5, waiting=True, seconds=60)
    now += GAP_SECONDS
    with pytest.raises(Stalled, match="no progress for 65 s"):
        watchdog.check("events/0", 5, waiting=True, seconds=60)


def fake_processors(decided: int = 0, deltas: int = 7) -> Any:
    """As `check_progress` sees a worker with a backlog in its partitions of each source."""
    return SimpleNamespace(
        app=SimpleNamespace(consumer=SimpleNamespace(highwater=lambda _: 100)),
        metrics=ProcessorsMetrics(CollectorRegistry()),
        fence=SimpleNamespace(open=True),
        names={Topic.EVENTS: "events"},
        next_offsets=lambda: {TP("events", 0): 5, TP("issue-deltas", 0): deltas, TP("issue-deltas", 1): 7},
        grouper=SimpleNamespace(looking_up=False, decided=decided),
    )


def test_a_batch_that_takes_long_is_no_stall_while_its_records_are_decided(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker, "STALL_SECONDS", -1.0)
    watchdog, ends = Watchdog(), SimpleNamespace(answers=0, latest={})
    for decided in range(3):
        worker.check_progress(fake_processors(decided=decided), watchdog, ends)  # type: ignore[arg-type]
    with pytest.raises(Stalled, match="events/0, issue-deltas/0, issue-deltas/1: no progress"):
        worker.check_progress(fake_processors(decided=2), watchdog, ends)  # type: ignore[arg-type]


@pytest.mark.parametrize("moving", ["decided", "deltas"])
def test_a_partition_that_waits_is_no_stall_while_another_one_moves(
    monkeypatch: pytest.MonkeyPatch, moving: str
) -> None:
    monkeypatch.setattr(worker, "STALL_SECONDS", -1.0)
    monkeypatch.setattr(worker, "SILENCE_SECONDS", -1.0)
    watchdog, ends = Watchdog(), SimpleNamespace(answers=0, latest={})
    for moved in range(3):
        worker.check_progress(fake_processors(**{moving: moved}), watchdog, ends)  # type: ignore[arg-type]


BLOCKED = """
import logging, sys, time
from processors.faust_app import watchdog
from schemas.topics import Topic
watchdog.LOOP_SECONDS, watchdog.TICK_SECONDS = 0.2, 0.02
logging.basicConfig(format="%(message)s")
with watchdog.ends_if_blocked(lambda: 7):
    while True:
        pass
"""


def test_a_blocked_loop_ends_its_process_and_says_where_it_was() -> None:
    ended = subprocess.run(
        [sys.executable, "-P", "-c", BLOCKED], check=False, capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 1
    [line] = ended.stderr.splitlines()
    assert line.startswith("the worker stops: Stalled: event loop: no progress for 0 s, in <string>:")


def test_a_loop_that_goes_on_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TICK_SECONDS", 0.001)
    monkeypatch.setattr(module, "LOOP_SECONDS", -1.0)
    looks = 0

    def progress() -> int:
        nonlocal looks
        looks += 1
        return looks

    with patch.object(os, "_exit") as end, ends_if_blocked(progress):
        while looks < 10:
            time.sleep(0.001)
    end.assert_not_called()
