"""The site of a frame: whose code it is, and a name that is stable across builds."""

from enum import IntEnum
from typing import Final, NamedTuple

CHARACTERS: Final = 300
"""Maximum of a function and of a file: bounds the cost of hostile frames; longer ones don't improve grouping."""


class Family(IntEnum):
    """The runtime that a frame came from."""

    JAVASCRIPT = 0
    JVM = 1
    NATIVE = 2
    OTHER = 3


_EXTENSIONS = {
    Family.JAVASCRIPT: "js jsx mjs cjs ts tsx mts cts jsbundle bundle hbc vue svelte html htm",
    Family.JVM: "java kt kts scala groovy clj cs fs vb",
    Family.NATIVE: "c cc cpp cxx m mm h hpp inc swift rs go s so dylib dll exe",
    Family.OTHER: "py rb php dart ex exs erl pl lua",
}
_BY_EXTENSION = {name: family for family, names in _EXTENSIONS.items() for name in names.split()}
_BY_PLATFORM = {"android": Family.JVM, "ios": Family.NATIVE, "python": Family.OTHER}
_JVM_PLACES = frozenset({"SourceFile", "Unknown Source", "Native Method", "PG"})
_JAVASCRIPT_PLACES = ("<anonymous>", "[native code]", "node:", "native code")
# An address has its scheme within this many characters.
_SCHEME = 32


class FrameRole(IntEnum):
    """Whose code a frame is."""

    APP = 0
    LIBRARY = 1
    """A dependency's, or unmarked."""
    PLATFORM = 2
    """The runtime's or the operating system's."""
    SKIPPED = 3
    """Machinery: reflection, aborting, allocating, crash handlers, comprehensions."""


class Site(NamedTuple):
    """A cleaned frame. `name` is empty for anonymous code; `module` is the file or module."""

    role: FrameRole
    name: str
    module: str
    family: Family
    marked: bool
    """Whether the client marked it as the app's."""
    vague: bool
    """The name alone doesn't identify the code: anonymous, renamed by an obfuscator, or one of a helper."""
    foldered: bool = False
    """Whether `module` is a file with its folder."""

    @property
    def text(self) -> str:
        """The text for people and for the hash."""
        if self.name and self.module:
            return f"{self.name} in {self.module}"
        return self.name or f"<anonymous> in {self.module}"

    @property
    def file(self) -> str:
        """The module without a folder."""
        return self.module.rpartition("/")[2] if self.foldered else self.module


def family_of(platform: str, file: str) -> Family:
    """The runtime of a frame, by its file, else by the event's platform."""
    path = file.partition("?")[0].partition("#")[0]
    extension = path[path.rfind(".") + 1 :][:12].partition(":")[0]
    known = _BY_EXTENSION.get(extension.lower())
    if known is not None:
        return known
    if path in _JVM_PLACES or path.startswith(("D8$$", "R8$$")):
        return Family.JVM
    if ".so." in path:
        return Family.NATIVE
    if "://" in path[:_SCHEME] or path.startswith(_JAVASCRIPT_PLACES):
        return Family.JAVASCRIPT
    return _BY_PLATFORM.get(platform, Family.JAVASCRIPT)
