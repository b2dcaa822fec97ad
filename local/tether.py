"""Starts a program that cannot outlive its parent process.

Run as a script: `python -I -S tether.py PARENT_PID NICE PROGRAM ARG...`. It requests SIGKILL from the kernel for the
parent's death (Linux only), lowers its priority by NICE and then executes the program, which inherits both.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(argv: list[str]) -> None:
    """Tie this process to its parent `argv[0]`, lower its priority by `argv[1]`, and execute the rest of `argv`."""
    parent, nice = int(argv[0]), int(argv[1])
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        # There is no signal if the parent ended before the call above.
        if os.getppid() != parent:
            sys.exit(1)
    os.nice(nice)
    os.execvp(argv[2], argv[2:])  # noqa: S606 - no shell is wanted


if __name__ == "__main__":
    main(sys.argv[1:])
