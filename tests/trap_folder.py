"""A folder in which no program may run code: it has a file or a package for each name that ours import."""

import sys
from pathlib import Path
from typing import Final

OWN: Final = ("cli", "control", "edge", "grouping", "local", "query", "runtime", "schemas", "storage", "svc")


class TrapFolder:
    """Modules named like those of the standard library and the product; each writes that it was read, and fails."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._marker = path / "read"
        code = f"open({str(self._marker)!r}, 'a').write(__name__ + '\\n')\nraise SystemExit('code of the folder')\n"
        path.mkdir()
        for name in sys.stdlib_module_names:
            (path / f"{name}.py").write_text(code)
        for name in OWN:
            (path / name).mkdir()
            (path / name / "__init__.py").write_text(code)

    def read(self) -> list[str]:
        """The modules that were read."""
        return self._marker.read_text().split() if self._marker.exists() else []
