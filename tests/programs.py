"""Programs of others that a few tests need, and not every machine has."""

import os
import shutil

import pytest


def program(name: str) -> str:
    """The path of a program that `.ci/tools` installs; without it a test is skipped, or fails where CI runs it."""
    found = shutil.which(name)
    if found is not None:
        return found
    reason = f"{name} is not on this machine: `make test-chart` installs it"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)
