"""Readiness of a process, by named parts."""

from collections.abc import Callable, Collection

from msgspec import Struct


class Part(Struct, frozen=True):
    """State of one part of a process; `detail` is a sentence for people."""

    ok: bool
    detail: str = ""


class Readiness(Struct, frozen=True, omit_defaults=True):
    """Body of `readyz`: whether the process is ready, its parts by name, and `SVC_INSTANCE`."""

    ready: bool
    parts: dict[str, Part]
    instance: str = ""


class Health:
    """The named parts of a process. A part is set by its owner, or evaluated by a probe on each request.

    `instance` is `SVC_INSTANCE`, by which `svc up` recognizes its own process behind a port.
    """

    def __init__(self, instance: str = "") -> None:
        self._instance = instance
        self._parts: dict[str, Part] = {}
        self._probes: dict[str, Callable[[], Part]] = {}
        self._others: dict[str, Collection[str]] = {}

    def set(self, name: str, ok: bool, detail: str = "") -> None:
        self._parts[name] = Part(ok, detail)

    def probe(self, name: str, ask: Callable[[], Part]) -> None:
        """Evaluate a part by `ask` on each request; it must not block."""
        self._probes[name] = ask

    def tolerate(self, names: Collection[str]) -> None:
        """Stay ready while one of these parts works: each is of another server, and one of them can still serve."""
        self._others |= dict.fromkeys(names, names)

    def parts(self) -> dict[str, Part]:
        return self._parts | {name: ask() for name, ask in self._probes.items()}

    @property
    def ready(self) -> bool:
        """Whether all parts work, but for those that are tolerated; a process without parts isn't ready yet."""
        parts = self.parts()
        failed = {name for name, part in parts.items() if not part.ok}
        return bool(parts) and not any(failed.issuperset(self._others.get(name, ())) for name in failed)

    def readiness(self) -> Readiness:
        """The body of `readyz`, sent with 200 or 503."""
        return Readiness(self.ready, self.parts(), self._instance)
