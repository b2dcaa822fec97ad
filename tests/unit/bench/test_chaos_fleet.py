"""Workers that come and go, with small Python children."""

import os
import signal
from pathlib import Path

from bench.chaos.fleet import Fleet, Worker
from tests.eventually import eventually
from tests.unit.local.children import IGNORES_TERM, STOPS_WELL, child, lives

DIES_ONCE = """
import os, pathlib, signal, sys
tried = pathlib.Path(sys.argv[2]) / "tried"
if not tried.exists():
    tried.touch()
    os.kill(os.getpid(), signal.SIGKILL)
"""
NAMES = ("writer", "writer2", "writer3")


def pid_of(worker: Worker) -> int:
    assert worker.status.pid is not None
    return worker.status.pid


async def test_workers_are_present_from_addition_to_removal(tmp_path: Path) -> None:
    fleet = Fleet("writer", [child(name, tmp_path) for name in NAMES])
    assert fleet.absent == [*NAMES]
    first, third = fleet.add_worker("writer"), fleet.add_worker("writer3")
    await first.ready()
    await third.ready()
    assert fleet.present == ["writer", "writer3"]
    assert {name: status.state for name, status in fleet.statuses.items()} == {
        "writer": "ready",
        "writer3": "ready",
    }
    assert [fleet.member(name) for name in NAMES] == ["0", "2", "3"]
    pid = pid_of(first)
    await fleet.remove_worker("writer", signal.SIGTERM)
    assert not lives(pid)
    assert (tmp_path / "stops").read_text().split() == ["writer"]
    killed = pid_of(third)
    await fleet.remove_worker("writer3", signal.SIGKILL)
    assert not lives(killed)
    assert (tmp_path / "stops").read_text().split() == ["writer"]
    assert fleet.absent == [*NAMES]
    assert fleet.killed_after_grace == []


async def test_a_killed_worker_is_restarted_until_its_removal(tmp_path: Path) -> None:
    fleet = Fleet("writer", [child("writer", tmp_path)])
    worker = fleet.add_worker("writer")
    await worker.ready()
    former = pid_of(worker)
    os.kill(former, signal.SIGKILL)
    await eventually(lambda: worker.status.state == "ready" and worker.status.pid not in {None, former})
    assert fleet.restarts == 1
    await fleet.stop()
    assert fleet.present == []
    assert fleet.restarts == 1


async def test_a_worker_that_is_killed_on_its_way_up_is_started_again(tmp_path: Path) -> None:
    fleet = Fleet("writer", [child("writer", tmp_path, DIES_ONCE + STOPS_WELL)])
    worker = fleet.add_worker("writer")
    await worker.ready()
    assert worker.status.state == "ready"
    assert fleet.restarts == 1
    await fleet.stop()


async def test_a_worker_that_ignores_sigterm_is_named(tmp_path: Path) -> None:
    fleet = Fleet("writer", [child("writer", tmp_path, IGNORES_TERM, grace_seconds=0.1)])
    await fleet.add_worker("writer").ready()
    await fleet.remove_worker("writer", signal.SIGTERM)
    assert fleet.killed_after_grace == ["writer"]
