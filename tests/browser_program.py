"""The browser for the tests: an installed one, else Debian's package, else Playwright's download.

`python -m tests.browser_program` prints its path, after installing one if necessary.
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
    """The path of an installed Chromium, including Playwright's own."""
    for program in PROGRAMS:
        if path := shutil.which(program):
            return path
    return _from_playwright()


def _from_playwright() -> str | None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if Path(path).exists() else None


def _run(*command: str) -> bool:
    environ = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    # Standard output is reserved for the path.
    return subprocess.run(command, stdout=sys.stderr, check=False, env=environ).returncode == 0


def install() -> bool:
    """Install a browser without prompts; true on success."""
    if os.geteuid() == 0 and shutil.which("apt-get"):
        _run("apt-get", "update", "-q")
        if _run("apt-get", "install", "-q", "-y", "--no-install-recommends", PACKAGE):
            return True
    return _run(sys.executable, "-P", "-m", "playwright", "install", "chromium")


def main() -> int:
    """Print the path of a browser; 1 if there is none and none can be installed."""
    path = installed() or (install() and installed())
    if not path:
        sys.stderr.write(f"no browser for the tests: install Chromium (Debian: apt-get install {PACKAGE})\n")
        return 1
    sys.stdout.write(f"{path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
