"""Readiness as named parts: each says whether it works, and why not."""

from collections.abc import Callable

from msgspec import Struct


class Part(Struct, frozen=True):
    """State of one part of a process; `detail` is a sentence for people."""

    ok: bool
    detail: str = ""


class Health:
    """The named parts of a process. A part is set by its owner, or asked through a probe at each look."""

    def __init__(self) -> None:
        self._parts: dict[str, Part] = {}
        self._probes: dict[str, Callable[[], Part]] = {}

    def set(self, name: str, ok: bool, detail: str = "") -> None:
        """Record the state of a part."""
        self._parts[name] = Part(ok, detail)

    def probe(self, name: str, ask: Callable[[], Part]) -> None:
        """Ask `ask`, which must not block, at each look."""
        self._probes[name] = ask

    def parts(self) -> dict[str, Part]:
        """All parts by name."""
        return self._parts | {name: ask() for name, ask in self._probes.items()}

    @property
    def ready(self) -> bool:
        """Whether every part works; a process without a part isn't ready yet."""
        parts = self.parts()
        return bool(parts) and all(part.ok for part in parts.values())
