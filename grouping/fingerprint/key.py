"""The fingerprint: 64 bits, and the readable parts that were hashed."""

from hashlib import blake2b
from typing import Final

from msgspec import Struct

from schemas.projects import GROUPING_VERSION

LEAST: Final = 256
"""The least fingerprint. The grouper records the reason of a dropped event as a lower number in its place."""


class Fingerprint(Struct, frozen=True, gc=False):
    """How an event was grouped.

    `hash` is an unsigned 64-bit number over GROUPING_VERSION and `parts`; `rule` names the step that decided: "stack",
    "message", "client", or "rule:NAME" for a project's rule. `discard` is true where a project's rule drops the event.
    """

    hash: int
    rule: str
    parts: tuple[str, ...]
    discard: bool = False

    @property
    def hex(self) -> str:
        """`hash` as 16 lower-case hexadecimal digits."""
        return f"{self.hash:016x}"


def hash_parts(parts: tuple[str, ...]) -> int:
    """64 bits over the version and the parts, at least `LEAST`.

    Each part is preceded by its length, so no two lists share a text.
    """
    text = "".join([f"{len(part)}:{part}" for part in (GROUPING_VERSION, *parts)])
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return max(LEAST, int.from_bytes(digest, "big"))
