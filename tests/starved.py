"""A tenth of two cores for some processes: a limit of the kernel's control group, or else signals
that freeze them nine tenths of the time."""

import os
import signal
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final
from uuid import uuid4

_CGROUPS: Final = Path("/sys/fs/cgroup")
_PERIOD_US: Final = 100_000
_CORES: Final = 0.2
_RUN_SECONDS: Final = 0.01
_FROZEN_SECONDS: Final = 0.09


@contextmanager
def starved(groups: Collection[int]) -> Iterator[None]:
    """While the block runs, the processes of these process groups get a tenth of two cores together."""
    try:
        cgroup = _new_cgroup()
    except OSError:
        with _frozen_mostly(groups):
            yield
        return
    try:
        _move(groups, cgroup)
        yield
    finally:
        _move(groups, cgroup.parent)
        cgroup.rmdir()


def _new_cgroup() -> Path:
    """A group with a limit. Raises OSError where this user may not make one."""
    v1 = _CGROUPS / "cpu"
    cgroup = (v1 if v1.is_dir() else _CGROUPS) / f"svc-{uuid4().hex}"
    cgroup.mkdir()
    try:
        quota = int(_CORES * _PERIOD_US)
        if v1.is_dir():
            (cgroup / "cpu.cfs_period_us").write_text(str(_PERIOD_US))
            (cgroup / "cpu.cfs_quota_us").write_text(str(quota))
        else:
            (cgroup / "cpu.max").write_text(f"{quota} {_PERIOD_US}")
    except OSError:
        cgroup.rmdir()
        raise
    return cgroup


def _move(groups: Collection[int], cgroup: Path) -> None:
    for folder in Path("/proc").iterdir():
        with suppress(ValueError, ProcessLookupError):
            pid = int(folder.name)
            if os.getpgid(pid) in groups:
                (cgroup / "cgroup.procs").write_text(str(pid))


@contextmanager
def _frozen_mostly(groups: Collection[int]) -> Iterator[None]:
    ended = threading.Event()

    def run() -> None:
        while not ended.wait(_RUN_SECONDS):
            _signal(groups, signal.SIGSTOP)
            ended.wait(_FROZEN_SECONDS)
            _signal(groups, signal.SIGCONT)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _signal(groups: Collection[int], number: signal.Signals) -> None:
    for group in groups:
        with suppress(ProcessLookupError):
            os.killpg(group, number)
