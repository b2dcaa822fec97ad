"""A worker whose grouping never ends for one event, once a file `block` is in its folder.

It notices sooner than other workers.
"""

import os
from pathlib import Path
from typing import Any

from cli import processors
from processors.faust_app import watchdog
from processors.grouper.fingerprinter import Fingerprinter

_group = Fingerprinter.group


def group(self: Fingerprinter, *arguments: Any) -> Any:
    """The grouper's handler, which blocks on request."""
    file = Path(os.environ["SVC_DATA_DIR"]) / "block"
    if file.exists():
        file.rename(file.with_name("blocked"))
        while True:
            pass
    return _group(self, *arguments)


def main() -> None:
    """`svc processors`, changed."""
    changed: Any
    for changed, name, value in ((watchdog, "LOOP_SECONDS", 4.0), (Fingerprinter, "group", group)):
        setattr(changed, name, value)
    processors.command()


if __name__ == "__main__":
    main()
