"""A full disk is told in one line that names it."""

import subprocess
import sys
from pathlib import Path

import pytest

from local.disk_space import NoDiskSpace, ended_without_room, free_bytes, require_space
from local.errors import StartError
from local.process import await_ready

TRACE = """[2026-11-22] ERROR Exiting Kafka due to fatal exception during startup.
java.io.IOException: No space left on device
\tat java.base/sun.nio.ch.FileDispatcherImpl.write0(Native Method)
\tat java.base/sun.nio.ch.FileDispatcherImpl.write(FileDispatcherImpl.java:62)"""


def test_too_little_room_is_told_before_the_start(tmp_path: Path) -> None:
    folder = tmp_path / "not" / "there" / "yet"
    with pytest.raises(NoDiskSpace) as told:
        require_space("Kafka", folder, free=lambda _: 1_234_567)
    assert str(told.value).startswith(f"no room for Kafka: 1,234,567 bytes free on the disk of {folder}, ")
    assert "\n" not in str(told.value)


def test_room_enough_is_no_trouble(tmp_path: Path) -> None:
    assert free_bytes(tmp_path / "not" / "there" / "yet") > 0
    require_space("Kafka", tmp_path, least=1)


@pytest.mark.parametrize(
    ("said", "free", "told"),
    [
        (TRACE, 1 << 40, "Kafka ended for want of room (No space left on device): "),
        ("a log that was cut off", 0, "Kafka ended for want of room: 0 bytes free"),
        ("java.lang.OutOfMemoryError", 1 << 40, ""),
    ],
)
def test_an_end_is_put_down_to_the_disk_where_it_is_full(
    tmp_path: Path, said: str, free: int, told: str
) -> None:
    line = ended_without_room("Kafka", tmp_path, said, free=lambda _: free)
    assert line.startswith(told)
    assert bool(line) == bool(told)
    assert "\n" not in line


def test_a_server_that_dies_of_a_full_disk_leaves_no_stack_trace(tmp_path: Path) -> None:
    log = tmp_path / "kafka.log"
    log.write_text(TRACE)
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    with pytest.raises(StartError) as told:
        await_ready("Kafka", process, lambda: False, log, 60, tmp_path)
    assert str(told.value).startswith("Kafka ended for want of room")
    assert "\n" not in str(told.value)
