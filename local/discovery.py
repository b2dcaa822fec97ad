"""How every other command with the same data directory finds the servers of a running `svc up`: `run.json`."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from local.data_dir import is_held
from local.private_file import write_private

FILE = "run.json"


@contextmanager
def published(data_dir: Path, variables: Mapping[str, str]) -> Iterator[None]:
    """Keep `run.json` (mode 600) with our variables while the servers run."""
    file = data_dir / FILE
    write_private(file, json.dumps({"pid": os.getpid(), "environment": dict(variables)}, indent=1) + "\n")
    try:
        yield
    finally:
        file.unlink(missing_ok=True)


def running(data_dir: Path) -> dict[str, str]:
    """The variables of the `svc up` that runs on `data_dir`; empty where none does, whatever a killed one left behind."""
    if not is_held(data_dir):
        return {}
    try:
        found: dict[str, str] = json.loads((data_dir / FILE).read_text())["environment"]
    except (FileNotFoundError, ValueError, KeyError):
        # Still starting, or written by another version.
        return {}
    return found


def overlaid(base: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """`environ` over `base`; a variable set in `environ` also hides the `_FILE` variant of `base`, and the other way round."""
    hidden = {name for given in environ for name in (given + "_FILE", given.removesuffix("_FILE"))}
    return {name: value for name, value in base.items() if name not in hidden} | dict(environ)


def environment(data_dir: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment for a command: what a running `svc up` says, overlaid by what is really set."""
    return overlaid(running(data_dir), environ)
