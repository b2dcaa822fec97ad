"""A full disk is reported in one line."""

import subprocess
import sys
from pathlib import Path

import pytest

from local.disk_space import NoDiskSpace, free_bytes, full_disk_error, require_space
from local.local_errors import StartError
from local.process_groups import await_ready

TRACE = """[2026-11-22] ERROR Exiting Kafka due to fatal exception during startup.
java.io.IOException: No space left on device
\tat java.base/sun.nio.ch.FileDispatcherImpl.write0(Native Method)
\tat java.base/sun.nio.ch.FileDispatcherImpl.write(FileDispatcherImpl.java:62)"""


def test_missing_space_is_reported_before_the_start(tmp_path: Path) -> None:
    folder = tmp_path / "not" / "there" / "yet"
    with pytest.raises(NoDiskSpace) as error:
        require_space("Kafka", folder, free=lambda _: 1_234_567)
    assert str(error.value).startswith(
        f"not enough disk space for Kafka: 1,234,567 of 67,108,864 required bytes free on the disk of {folder}; "
    )
    assert "\n" not in str(error.value)


def test_enough_space_raises_nothing(tmp_path: Path) -> None:
    assert free_bytes(tmp_path / "not" / "there" / "yet") > 0
    require_space("Kafka", tmp_path, minimum=1)


@pytest.mark.parametrize(
    ("log_tail", "free", "expected"),
    [
        (TRACE, 1 << 40, "Kafka ran out of disk space (No space left on device): "),
        ("a log that was cut off", 0, "Kafka ran out of disk space: 0 bytes free"),
        ("java.lang.OutOfMemoryError", 1 << 40, ""),
    ],
)
def test_an_exit_is_attributed_to_a_full_disk(
    tmp_path: Path, log_tail: str, free: int, expected: str
) -> None:
    line = full_disk_error("Kafka", tmp_path, log_tail, free=lambda _: free)
    assert line.startswith(expected)
    assert bool(line) == bool(expected)
    assert "\n" not in line


def test_a_server_that_dies_of_a_full_disk_leaves_no_stack_trace(tmp_path: Path) -> None:
    log = tmp_path / "kafka.log"
    log.write_text(TRACE)
    process = subprocess.Popen([sys.executable, "-P", "-c", ""])
    process.wait()
    with pytest.raises(StartError) as error:
        await_ready("Kafka", process, lambda: False, log, 60, tmp_path)
    assert str(error.value).startswith("Kafka ran out of disk space")
    assert "\n" not in str(error.value)
