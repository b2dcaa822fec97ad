"""Start a program that cannot outlive the process that started it.

Run as a script: `python -I -S tether.py PARENT_PID PROGRAM ARG...`. It asks the kernel for SIGKILL at the end of its parent and then
becomes the program, which keeps that wish. Linux only; elsewhere the program simply runs.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(argv: list[str]) -> None:
    """Tie this process to `argv[0]`, the pid of its parent, and replace it by the rest of `argv`."""
    parent = int(argv[0])
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        # A parent that ended before the call above sends no signal any more.
        if os.getppid() != parent:
            sys.exit(1)
    os.execvp(argv[1], argv[1:])  # noqa: S606 - no shell is wanted


if __name__ == "__main__":
    main(sys.argv[1:])
