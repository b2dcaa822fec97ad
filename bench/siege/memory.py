"""The memory and CPU time of the edge: its process and descendants."""

import asyncio
import os
import time
from pathlib import Path

MB = 1 << 20


def edge_mb(pid: int) -> float:
    """Resident memory of a process and its descendants in MB; 0 for an ended one."""
    return sum(_resident(each) for each in family(pid)) / MB


def family(pid: int) -> list[int]:
    """A process and its descendants."""
    pids = [pid]
    for each in pids:
        for task in Path(f"/proc/{each}/task").glob("*/children"):
            try:
                pids += [int(child) for child in task.read_text(encoding="ascii").split()]
            except OSError:
                continue
    return pids


def cpu_seconds(pid: int) -> float:
    """CPU seconds of a process and its descendants."""
    ticks = 0
    for each in family(pid):
        fields = Path(f"/proc/{each}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


async def settled_mb(pid: int, goal: float, seconds: float) -> float:
    """The memory, once it is at most `goal` or after a time limit."""
    end = time.monotonic() + seconds
    while (now := edge_mb(pid)) > goal and time.monotonic() < end:
        await asyncio.sleep(0.5)
    return now


def _resident(pid: int) -> int:
    try:
        for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0
