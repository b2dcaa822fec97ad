"""Supervision with small Python children."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from local.local_errors import StartError
from runtime.process import RunningProcess, await_end
from runtime.supervisor import Supervisor
from tests.eventually import eventually
from tests.unit.local.children import HAS_A_CHILD, IGNORES_TERM, child, lives

ROOT = Path(__file__).parents[3]


def pid_of(supervisor: Supervisor, name: str) -> int:
    pid = supervisor.statuses[name].pid
    assert pid is not None
    return pid


async def test_children_start_in_order_and_stop_in_reverse(tmp_path: Path) -> None:
    supervisor = Supervisor([child(name, tmp_path) for name in ("a", "b", "c")])
    await supervisor.start()
    assert [status.state for status in supervisor.statuses.values()] == ["ready"] * 3
    await supervisor.stop()
    assert (tmp_path / "starts").read_text().split() == ["a", "b", "c"]
    assert (tmp_path / "stops").read_text().split() == ["c", "b", "a"]
    assert [status.state for status in supervisor.statuses.values()] == ["stopped"] * 3


async def test_children_that_stop_together_share_their_grace_period(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    states, waits = list[str](), list[float]()

    def end_late(process: RunningProcess, seconds: float) -> bool:
        waits.append(seconds)
        return await_end(process, 0.0)

    children = [child(name, tmp_path, IGNORES_TERM, grace_seconds=3) for name in ("a", "b", "c")]
    supervisor = Supervisor(children, lambda status: states.append(status.state), together=True)
    await supervisor.start()
    # The time is what they have waited.
    monkeypatch.setattr("runtime.supervisor.time", SimpleNamespace(monotonic=lambda: sum(waits)))
    monkeypatch.setattr("runtime.supervisor.await_end", end_late)
    await supervisor.stop()
    assert states[-6:] == ["stopping"] * 3 + ["stopped"] * 3
    assert waits == [3.0, 0.0, 0.0]
    assert [status.detail for status in supervisor.statuses.values()] == ["killed after 3 s"] * 3


async def test_each_death_is_reported_and_the_pauses_before_restarts_can_be_chosen(tmp_path: Path) -> None:
    deaths: list[tuple[int, int]] = []
    supervisor = Supervisor(
        [child("a", tmp_path)], died=lambda pid, status: deaths.append((pid, status)), restart_seconds=(0.0,)
    )
    await supervisor.start()
    status, pids = supervisor.statuses["a"], list[int]()
    for restarts in (1, 2, 3):
        pids.append(pid_of(supervisor, "a"))
        os.kill(pids[-1], signal.SIGKILL)
        await eventually(lambda: status.restarts == restarts and status.state == "ready")  # noqa: B023
    await supervisor.stop()
    assert deaths == [(pid, -signal.SIGKILL) for pid in pids]


async def test_child_that_ignores_the_request_to_stop_is_killed_after_its_grace(tmp_path: Path) -> None:
    supervisor = Supervisor([child("deaf", tmp_path, IGNORES_TERM, grace_seconds=0.1)])
    await supervisor.start()
    pid = pid_of(supervisor, "deaf")
    await supervisor.stop()
    assert not lives(pid)
    assert "killed" in supervisor.statuses["deaf"].detail


async def test_second_request_to_stop_does_not_wait_for_the_grace(tmp_path: Path) -> None:
    supervisor = Supervisor([child("deaf", tmp_path, IGNORES_TERM, grace_seconds=600)])
    await supervisor.start()
    supervisor.request_stop()
    stop = asyncio.create_task(supervisor.stop())
    await eventually(lambda: supervisor.statuses["deaf"].state == "stopping")
    supervisor.request_stop()
    async with asyncio.timeout(30):
        await stop


async def test_processes_that_a_child_leaves_behind_are_killed_too(tmp_path: Path) -> None:
    supervisor = Supervisor([child("parent", tmp_path, HAS_A_CHILD)])
    await supervisor.start()
    grandchild = int((tmp_path / "grandchild").read_text())
    assert lives(grandchild)
    await supervisor.stop()
    await eventually(lambda: not lives(grandchild))


async def test_start_that_fails_names_the_child_and_quotes_its_log(tmp_path: Path) -> None:
    supervisor = Supervisor([child("a", tmp_path), child("bad", tmp_path, "raise SystemExit('no luck')")])
    with pytest.raises(StartError, match=r"(?s)bad ended with 1 .*no luck"):
        await supervisor.start()
    await supervisor.stop()
    assert (tmp_path / "stops").read_text().split() == ["a"]


async def test_child_that_never_gets_ready_is_given_up_and_killed(tmp_path: Path) -> None:
    seen: list[int] = []
    supervisor = Supervisor(
        [child("slow", tmp_path, ready=lambda: False, start_seconds=0.3)],
        lambda status: seen.append(status.pid or 0),
    )
    with pytest.raises(StartError, match=r"slow was not ready and made no progress in 0 s"):
        await supervisor.start()
    await supervisor.stop()
    assert not lives(max(seen))


async def test_child_that_makes_progress_is_waited_for_however_long_it_takes(tmp_path: Path) -> None:
    lines = iter(["1 read", "2 read", "3 read", "4 read"])
    reported: list[str] = []

    def progress() -> str:
        reported.append(next(lines, "the last word"))
        return reported[-1]

    slow = child("slow", tmp_path, ready=lambda: len(reported) >= 4, start_seconds=0.05, progress=progress)
    supervisor = Supervisor([slow])
    await supervisor.start()
    assert supervisor.statuses["slow"].state == "ready"
    await supervisor.stop()


async def test_a_child_that_starts_says_what_it_waits_for(tmp_path: Path) -> None:
    waiting: set[str] = set()
    writer = child(
        "writer", tmp_path, ready=lambda: len(waiting) > 1, progress=lambda: "clickhouse: no answer"
    )
    supervisor = Supervisor([writer], lambda status: waiting.add(status.detail), check_seconds=0)
    await supervisor.start()
    assert waiting == {"", "clickhouse: no answer"}
    assert supervisor.statuses["writer"].detail == ""
    await supervisor.stop()


async def test_child_whose_progress_ends_is_given_up_with_its_last_word(tmp_path: Path) -> None:
    stuck = child("stuck", tmp_path, ready=lambda: False, start_seconds=0.05, progress=lambda: "7 read")
    supervisor = Supervisor([stuck])
    with pytest.raises(StartError, match=r"made no progress in 0 s \(7 read\)"):
        await supervisor.start()
    await supervisor.stop()


async def test_step_that_runs_once_ends_before_the_next_child_starts(tmp_path: Path) -> None:
    step = child(
        "step",
        tmp_path,
        "import pathlib, sys; pathlib.Path(sys.argv[2], 'starts').write_text('step\\n')",
        once=True,
    )
    supervisor = Supervisor([step, child("a", tmp_path)])
    await supervisor.start()
    assert supervisor.statuses["step"].state == "done"
    await supervisor.stop()
    assert (tmp_path / "starts").read_text().split() == ["step", "a"]


async def test_request_to_stop_during_the_start_ends_it(tmp_path: Path) -> None:
    supervisor = Supervisor(
        [child("a", tmp_path), child("never", tmp_path, ready=lambda: False), child("c", tmp_path)]
    )
    start = asyncio.create_task(supervisor.start())
    await eventually((tmp_path / "never.ready").exists)
    supervisor.request_stop()
    async with asyncio.timeout(30):
        await start
    await supervisor.stop()
    assert "c" not in (tmp_path / "starts").read_text().split()
    assert (tmp_path / "stops").read_text().split() == ["never", "a"]


async def test_running_child_that_is_no_longer_ready_becomes_unready(tmp_path: Path) -> None:
    supervisor = Supervisor([child("a", tmp_path)], check_seconds=0.01)
    await supervisor.start()
    status = supervisor.statuses["a"]
    (tmp_path / "a.ready").unlink()
    await eventually(lambda: status.state == "unready")
    (tmp_path / "a.ready").touch()
    await eventually(lambda: status.state == "ready")
    assert status.restarts == 0
    await supervisor.stop()


async def test_children_die_with_a_supervisor_that_is_killed(tmp_path: Path) -> None:
    program = f"""
import asyncio, pathlib
from runtime.supervisor import Supervisor
from tests.unit.local.children import child, IGNORES_TERM
folder = pathlib.Path({str(tmp_path)!r})
async def main():
    supervisor = Supervisor([child("a", folder, IGNORES_TERM)])
    await supervisor.start()
    (folder / "pid").write_text(str(supervisor.statuses["a"].pid))
    (folder / "pid.ready").touch()
    await asyncio.sleep(600)
asyncio.run(main())
"""
    parent = subprocess.Popen([sys.executable, "-P", "-c", program], cwd=ROOT)  # noqa: ASYNC220
    try:
        await eventually((tmp_path / "pid.ready").exists)
        pid = int((tmp_path / "pid").read_text())
        assert lives(pid)
    finally:
        parent.kill()
        parent.wait()
    await eventually(lambda: not lives(pid))
