"""The `ctx.obj` of `svc`'s subcommands: the data directory and the environment."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Workspace:
    """A data directory and the environment, including the addresses of a running `svc up` (`local.discovery`)."""

    data_dir: Path
    environ: dict[str, str]
