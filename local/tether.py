"""Start a program that cannot outlive the process that started it.

Run as a script: `python -I -S tether.py PARENT_PID NICE PROGRAM ARG...`. It asks the kernel for SIGKILL at the end of its parent, lowers
its priority by NICE and then becomes the program, which keeps both. Linux only; elsewhere the program runs with the priority alone.
"""

import contextlib
import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def lower_priority(nice: int) -> None:
    """Lower the priority of this process. With autogroup scheduling niceness counts only within a session, so the session's own is set too."""
    os.nice(nice)
    with contextlib.suppress(OSError), open("/proc/self/autogroup", "w", encoding="ascii") as weight:  # noqa: PTH123 - starts faster
        weight.write(str(nice))


def main(argv: list[str]) -> None:
    """Tie this process to `argv[0]`, the pid of its parent, lower its priority by `argv[1]`, and replace it by the rest of `argv`."""
    parent, nice = int(argv[0]), int(argv[1])
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        # A parent that ended before the call above sends no signal any more.
        if os.getppid() != parent:
            sys.exit(1)
    if nice:
        lower_priority(nice)
    os.execvp(argv[2], argv[2:])  # noqa: S606 - no shell is wanted


if __name__ == "__main__":
    main(sys.argv[1:])
