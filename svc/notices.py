"""What the library says about itself: each kind of trouble once, through the logger `svc`."""

import contextlib
import logging
from typing import Final

LOGGER: Final = "svc"


class Notices:
    """Says each kind of thing once, so that a program in trouble is not buried under ours."""

    def __init__(self) -> None:
        self._said: set[str] = set()

    def once(self, kind: str, sentence: str, *parts: object) -> None:
        """Log a warning unless this kind was warned of before; never raises."""
        if kind in self._said:
            return
        self._said.add(kind)
        with contextlib.suppress(Exception):
            logging.getLogger(LOGGER).warning("svc: " + sentence, *parts)
