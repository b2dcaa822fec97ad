"""The browser for the tests: an installed one, else Debian's package, else the one that Playwright downloads.

`python -m local.browser` prints its path, installing one first where none is there.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

PROGRAMS = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
)
PACKAGE = "chromium-headless-shell"


def installed() -> str | None:
    """The path of a Chromium on this machine, Playwright's own included."""
    for program in PROGRAMS:
        if found := shutil.which(program):
            return found
    return _of_playwright()


def _of_playwright() -> str | None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if Path(path).exists() else None


def _run(*command: str) -> bool:
    # Standard output is for the path alone.
    return (
        subprocess.run(
            command, stdout=sys.stderr, check=False, env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        ).returncode
        == 0
    )


def install() -> bool:
    """Install a browser without asking anybody; whether something was installed."""
    if os.geteuid() == 0 and shutil.which("apt-get"):
        _run("apt-get", "update", "-q")
        if _run("apt-get", "install", "-q", "-y", "--no-install-recommends", PACKAGE):
            return True
    return _run(sys.executable, "-m", "playwright", "install", "chromium")


def main() -> int:
    """Print the path of a browser; 1 where none can be had."""
    found = installed() or (install() and installed())
    if not found:
        sys.stderr.write(f"no browser for the tests: install Chromium (Debian: apt-get install {PACKAGE})\n")
        return 1
    sys.stdout.write(f"{found}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
