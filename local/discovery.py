"""`run.json`: how other commands with the same data directory find the servers of a running `svc up`."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from local.data_dir import is_locked
from local.private_file import write_private

FILE = "run.json"


@contextmanager
def published(data_dir: Path, variables: Mapping[str, str]) -> Iterator[None]:
    """Provide `run.json` (mode 600) with our variables inside the block."""
    file = data_dir / FILE
    write_private(file, json.dumps({"pid": os.getpid(), "environment": dict(variables)}, indent=1) + "\n")
    try:
        yield
    finally:
        file.unlink(missing_ok=True)


def running(data_dir: Path) -> dict[str, str]:
    """The variables of the `svc up` running on `data_dir`; empty if none runs. A killed one's file is ignored."""
    if not is_locked(data_dir):
        return {}
    try:
        variables: dict[str, str] = json.loads((data_dir / FILE).read_text())["environment"]
    except (FileNotFoundError, ValueError, KeyError):
        # Still starting, or written by another version.
        return {}
    return variables


def overlaid(base: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """`base` overridden by `environ`.

    A variable in `environ` also hides its `_FILE` variant in `base` and vice versa.
    """
    hidden = {variant for name in environ for variant in (name + "_FILE", name.removesuffix("_FILE"))}
    return {name: value for name, value in base.items() if name not in hidden} | dict(environ)


def environment(data_dir: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of a command: the variables of a running `svc up`, overridden by `environ`."""
    return overlaid(running(data_dir), environ)
