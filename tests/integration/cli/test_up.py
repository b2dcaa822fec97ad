"""`svc up` as people start it: a process with everything below it."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from local.discovery import running
from local.ports import free_port
from tests.eventually import eventually
from tests.servers import CACHE
from tests.trap_folder import TrapFolder
from tests.unit.local.children import lives

pytestmark = pytest.mark.slow

START_SECONDS = 120


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """A data directory whose downloads are those of the other tests."""
    CACHE.mkdir(exist_ok=True)
    (tmp_path / "cache").symlink_to(CACHE)
    return tmp_path


@pytest.fixture
def ports() -> dict[str, str]:
    ingest = free_port()
    return {"SVC_INGEST_PORT": str(ingest), "SVC_DASHBOARD_PORT": str(free_port())}


@pytest.fixture
def trap(tmp_path_factory: pytest.TempPathFactory) -> TrapFolder:
    """The working directory of the person who starts it."""
    return TrapFolder(tmp_path_factory.mktemp("cwd") / "folder")


def command(data_dir: Path, *words: str) -> list[str]:
    """The console script."""
    return [str(Path(sys.executable).with_name("svc")), "--data-dir", str(data_dir), *words]


@contextmanager
def svc_up(data_dir: Path, environ: dict[str, str], cwd: Path) -> Iterator[subprocess.Popen[bytes]]:
    """`svc up` with its output in `out`; killed at the end if need be."""
    with (data_dir / "out").open("ab") as out:
        process = subprocess.Popen(
            command(data_dir, "up"), cwd=cwd, env=os.environ | environ, stdout=out, stderr=subprocess.STDOUT
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def printed(data_dir: Path) -> str:
    return (data_dir / "out").read_text()


async def started(data_dir: Path, process: subprocess.Popen[bytes]) -> None:
    def ready() -> bool:
        assert process.poll() is None, printed(data_dir)
        return bool(running(data_dir)) and "\nlogs " in printed(data_dir)

    await eventually(ready, START_SECONDS)


def processes(data_dir: Path) -> dict[int, str]:
    """Every process whose command line or environment names the data directory, but the ones of this test."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes()
            named = str(data_dir).encode() in words + (folder / "environ").read_bytes()
        except OSError:
            continue
        if named and int(folder.name) != os.getpid() and lives(int(folder.name)):
            found[int(folder.name)] = words.replace(b"\0", b" ").decode(errors="replace")
    return found


def pid_of(data_dir: Path, child: str) -> int:
    """The process that the last status line of a child names."""
    lines = [line.split() for line in printed(data_dir).splitlines() if line.startswith(f"{child} ")]
    return next(int(words[words.index("pid") + 1]) for words in reversed(lines) if "ready" in words)


async def test_everything_starts_is_found_survives_kills_and_leaves_nothing_behind(
    data_dir: Path, ports: dict[str, str], trap: TrapFolder
) -> None:
    with svc_up(data_dir, ports, trap.path) as process:
        await started(data_dir, process)

        made = subprocess.run(  # noqa: ASYNC221
            command(data_dir, "projects", "create", "kept", "--json"),
            cwd=trap.path,
            capture_output=True,
            check=True,
        )
        assert json.loads(made.stdout)["token"].startswith("svc_pk_")

        again = command(data_dir, "up")
        second = subprocess.run(again, cwd=trap.path, capture_output=True, check=False)  # noqa: ASYNC221
        assert second.returncode == 1
        assert b"another `svc up` runs" in second.stdout

        old = {child: pid_of(data_dir, child) for child in ("kafka", "clickhouse", "writer")}
        for pid in old.values():
            os.kill(pid, signal.SIGKILL)
        await eventually(
            lambda: all(pid_of(data_dir, child) != pid for child, pid in old.items()), START_SECONDS
        )

        process.send_signal(signal.SIGTERM)
        await eventually(lambda: process.poll() is not None, START_SECONDS)
        assert process.returncode == 0, printed(data_dir)
    assert processes(data_dir) == {}
    assert running(data_dir) == {}

    with svc_up(data_dir, ports, trap.path) as process:
        await started(data_dir, process)
        listed = subprocess.run(  # noqa: ASYNC221
            command(data_dir, "projects", "list", "--json"), cwd=trap.path, capture_output=True, check=True
        )
        assert [project["name"] for project in json.loads(listed.stdout)] == ["kept"]
        process.kill()
    await eventually(lambda: processes(data_dir) == {})
    assert not trap.read()
