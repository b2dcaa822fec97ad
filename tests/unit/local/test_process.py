"""One child process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from local.local_errors import StartError
from local.process_groups import TETHER, await_ready, rotate, spawn, tail
from runtime.process import end


def test_output_goes_to_the_log_and_a_later_start_appends(tmp_path: Path) -> None:
    log = tmp_path / "log" / "child.log"
    for word in ("one", "two"):
        spawn([sys.executable, "-P", "-c", f"print('{word}')"], log=log).wait()
    assert log.read_text().split() == ["one", "two"]


def test_child_leads_a_group_in_the_session_of_its_parent(tmp_path: Path) -> None:
    log = tmp_path / "log"
    process = spawn([sys.executable, "-P", "-c", "import os; print(os.getpgrp(), os.getsid(0))"], log=log)
    process.wait()
    assert log.read_text().split() == [str(process.pid), str(os.getsid(0))]


@pytest.mark.parametrize(("by_sessions", "lower"), [("1", 7), ("0", 0), (None, 0)])
def test_a_child_yields_to_others_of_its_session_and_to_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_sessions: str | None, lower: int
) -> None:
    log, weight, autogroup = tmp_path / "log", Path("/proc/self/autogroup"), tmp_path / "autogroup"
    if by_sessions is not None:
        autogroup.write_text(by_sessions + "\n")
    monkeypatch.setattr("local.process_groups.AUTOGROUP", autogroup)
    say = f"import os; from pathlib import Path; group = Path('{weight}'); "
    say += "print(os.nice(0), group.read_text() if group.exists() else '')"
    spawn([sys.executable, "-P", "-c", say], log=log, nice=7).wait()
    own = weight.read_text() if weight.exists() else ""
    assert log.read_text().split() == [str(os.nice(0) + lower), *own.split()]


def test_large_log_is_rotated_at_the_next_start(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("12345")
    rotate(log, limit=4)
    assert not log.exists()
    assert (tmp_path / "a.log.1").read_text() == "12345"
    log.write_text("1234")
    rotate(log, limit=4)
    assert log.exists()


def test_tail_is_the_end_of_a_log(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    assert tail(log) == "(no log)"
    log.write_text("".join(f"{n}\n" for n in range(10_000)))
    assert tail(log).splitlines() == [str(n) for n in range(9988, 10_000)]


def test_program_that_is_missing_ends_the_child_with_a_reason_in_the_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    process = spawn(["/no/such/program"], log=log)
    with pytest.raises(StartError, match="No such file or directory"):
        await_ready("ghost", process, lambda: False, log, 30)


def test_end_of_a_child_that_has_ended_is_no_error(tmp_path: Path) -> None:
    process = spawn([sys.executable, "-P", "-c", ""], log=tmp_path / "log")
    process.wait()
    assert end(process, 1)


def test_program_does_not_start_after_its_parent_ended(tmp_path: Path) -> None:
    trace = tmp_path / "ran"
    foreign = os.getppid()
    done = subprocess.run([sys.executable, str(TETHER), str(foreign), "0", "touch", str(trace)], check=False)
    assert done.returncode == 1
    assert not trace.exists()
