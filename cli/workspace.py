"""What a subcommand of `svc` gets as `ctx.obj`: where its data are and the environment it reads its settings from."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Workspace:
    """A data directory and the environment, the addresses of a running `svc up` included (`local.discovery`)."""

    data_dir: Path
    environ: dict[str, str]
