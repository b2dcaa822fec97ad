"""What a run of tests leaves behind: nothing, however it ends."""

import os
import subprocess
import sys
from pathlib import Path

from tests.run_servers import RunServers

TERMINATED = """
import os, signal, sys
from tests.run_servers import RunServers
servers = RunServers({}, sys.argv[1])
servers.pytest_configure()
try:
    os.kill(os.getpid(), signal.SIGTERM)
except KeyboardInterrupt:
    servers.pytest_unconfigure()"""
FORKS = "from tests import forked; print(forked._parent()); forked.stop()"


def run(program: str, folder: Path) -> str:
    command = [sys.executable, "-P", "-c", program, str(folder)]
    return subprocess.check_output(command, env=os.environ | {"TMPDIR": str(folder)}, text=True)


def test_folders_of_killed_controllers_are_removed_and_not_those_of_running_ones(tmp_path: Path) -> None:
    (tmp_path / "svc-servers-old" / "ClickHouse").mkdir(parents=True)
    runs = [RunServers({}, str(tmp_path)) for _ in range(2)]
    assert len([*tmp_path.iterdir()]) == 2
    for one in runs:
        one.stop()
    assert [*tmp_path.iterdir()] == []


def test_a_terminated_controller_ends_as_an_interrupted_one(tmp_path: Path) -> None:
    run(TERMINATED, tmp_path)
    assert [*tmp_path.iterdir()] == []


def test_the_parent_of_forked_processes_starts_under_a_long_path_and_removes_its_socket(
    tmp_path: Path,
) -> None:
    long = tmp_path / ("long" * 30)
    long.mkdir()
    assert not Path(run(FORKS, long).strip()).parent.exists()
    assert [*long.iterdir()] == []
