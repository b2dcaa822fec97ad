"""Small recorded builds of one application with one error, and the events that it reports.

`samples/builds` was made once from the same sources: by Vite with terser, by esbuild, and by Metro with the bytecode
of Hermes; the second builds add a function. The stacks are those that V8 and Hermes print. The mapping of R8 is
written by hand in its format.
"""

import uuid
from pathlib import Path
from typing import Any, NamedTuple

from schemas.times import iso

BUILDS = Path(__file__).parent / "samples" / "builds"


class Build(NamedTuple):
    """A build in `folder`, and the stack of its error as (function, line, column)."""

    release: str
    folder: str
    file: str
    address: str
    stack: tuple[tuple[str, int, int], ...]

    @property
    def script(self) -> bytes:
        return (BUILDS / self.folder / self.file).read_bytes()

    @property
    def map(self) -> bytes:
        return (BUILDS / self.folder / f"{self.file}.map").read_bytes()

    def event(self, number: int, ms: int) -> dict[str, Any]:
        """The event that it reports."""
        return event_of(
            self.release,
            number,
            ms,
            [
                {"function": function, "file": self.address, "line": line, "column": column, "inApp": True}
                for function, line, column in self.stack
            ],
        )


def event_of(
    release: str, number: int, ms: int, stack: list[dict[str, Any]], platform: str = "javascript"
) -> dict[str, Any]:
    """A valid event with this stack."""
    head = (ms << 80) | (7 << 76) | (2 << 62) | number
    message = "Cannot read properties of undefined (reading 'cents')"
    return {
        "id": str(uuid.UUID(int=head)),
        "timestamp": iso(ms),
        "kind": "error",
        "platform": platform,
        "release": release,
        "environment": "prod",
        "device": {"os": "web", "osVersion": "1"},
        "app": {"version": "1.0.0"},
        "error": {"type": "TypeError", "message": message, "stack": stack},
    }


def _web(release: str, folder: str, file: str, *stack: tuple[str, int]) -> Build:
    """A build whose code is one line."""
    places = tuple((function, 1, column) for function, column in stack)
    return Build(release, folder, file, f"https://shop.example/{file}", places)


VITE = (
    _web("shop@1.0.0+1", "vite-1", "assets/index-BIB-3fzx.js", ("s", 522), ("i.submitOrder", 611), ("", 797)),
    _web("shop@1.1.0+2", "vite-2", "assets/index-B6NAm8Bl.js", ("o", 522), ("s.submitOrder", 611), ("", 852)),
)
ESBUILD = (
    _web("till@1.0.0+1", "esbuild-1", "main-K32ZPJQN.js", ("a", 538), ("n.submitOrder", 627), ("l", 800)),
    _web("till@1.1.0+2", "esbuild-2", "main-SNYF3ZBF.js", ("l", 538), ("n.submitOrder", 627), ("u", 841)),
)
HERMES = Build(
    "app@1.0.0+1",
    "hermes",
    "index.android.bundle",
    "index.android.bundle",
    # Hermes counts columns from 0, the protocol from 1.
    (("totalOf", 1, 2720), ("submitOrder", 1, 2856), ("handleClick", 1, 2244)),
)
MAPPING = BUILDS / "r8" / "mapping.txt"
R8_STACK: list[dict[str, Any]] = [
    {"function": "a.a.a", "file": "SourceFile", "line": 1, "inApp": True},
    {"function": "shop.ui.CheckoutActivity.a", "file": "SourceFile", "line": 2, "inApp": True},
    {"function": "java.lang.Thread.run", "file": "Thread.java", "line": 920, "inApp": False},
]
