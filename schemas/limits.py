"""The limits of section 8 of the protocol: values, names and error messages."""

from enum import Enum
from typing import Final

MAX_BODY_BYTES: Final = 1_048_576
"""Decoded size of a body, single or batch (contract, section 2, point 5)."""

MAX_DEPTH: Final = 500
"""Nesting of objects and arrays in an event, including its own.

Ten times as deep as the schema needs, and safe for all decoders."""


class Limit(Enum):
    """A count or length limit: (maximum, name in the table of section 8, unit)."""

    EVENTS_PER_BATCH = (100, "events per batch", "")
    BREADCRUMBS = (100, "breadcrumbs per event", "")
    FRAMES = (100, "stack frames per error", "")
    CAUSE_DEPTH = (10, "cause chain depth", "")
    TAG_KEYS = (50, "tag keys per event", "")
    TAG_KEY_LENGTH = (64, "tag key length", "chars")
    TAG_VALUE_LENGTH = (200, "tag value length", "chars")
    CONTEXT_LINES = (5, "preContext / postContext lines per frame", "")

    def __init__(self, maximum: int, title: str, unit: str) -> None:
        self.maximum = maximum
        self.title = title
        self.unit = unit

    @property
    def sentence(self) -> str:
        """The `details[].message` of a violation (contract, section 2, point 3)."""
        if self is Limit.CAUSE_DEPTH or self.unit:
            return f"{self.title}: at most {self.maximum} {self.unit}".rstrip()
        return f"at most {self.maximum} {self.title}"


MAX_DETAILS: Final = 20
"""Maximum number of `details` of a rejected event (contract, section 2, point 3)."""

MAX_LENIENT_RELEASE: Final = 200
"""Maximum length of a release in a lenient project, in code points (contract, section 2, point 7)."""
