"""Issues by project and fingerprint; remembered, because one hash costs more than looking up the last of many."""

from functools import lru_cache
from typing import Final

from schemas.ids import issue_id

REMEMBERED: Final = 65_536


@lru_cache(maxsize=REMEMBERED)
def issue_of(project: int, fingerprint: int) -> int:
    """The issue that a fingerprint opens."""
    return issue_id(project, fingerprint)
