"""Files with a secret in them: readable by their owner only, written whole or not at all."""

import os
from pathlib import Path


def write_private(file: Path, text: str) -> None:
    """Put `text` into `file` (mode 600) at once, in place of what was there."""
    written = file.with_name(f"{file.name}.{os.getpid()}.new")
    written.unlink(missing_ok=True)
    with open(os.open(written, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600), "w") as out:  # noqa: PTH123
        out.write(text)
    written.replace(file)
