"""The library's own warnings, through the logger `svc`."""

import contextlib
import logging
from typing import Final

LOGGER: Final = "svc"


class Notices:
    """Logs each kind of warning once, so that a failing program's log isn't flooded."""

    def __init__(self) -> None:
        self._logged: set[str] = set()

    def once(self, kind: str, message: str, *args: object) -> None:
        """Log a warning unless one of this kind was logged before; never raises."""
        if kind in self._logged:
            return
        self._logged.add(kind)
        with contextlib.suppress(Exception):
            logging.getLogger(LOGGER).warning("svc: " + message, *args)
