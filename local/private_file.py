"""Files with secrets: readable by their owner only, written atomically."""

import os
from pathlib import Path


def write_private(file: Path, text: str) -> None:
    """Replace `file` (mode 600) by `text` atomically."""
    new = file.with_name(f"{file.name}.{os.getpid()}.new")
    new.unlink(missing_ok=True)
    with open(os.open(new, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600), "w") as out:  # noqa: PTH123
        out.write(text)
    new.replace(file)
