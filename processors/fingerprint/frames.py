"""From a raw frame to a site: whose code it is, and the name that stays the same from build to build."""

import re
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

from processors.fingerprint import javascript, jvm, native
from processors.fingerprint.forms import Frame, OwnFrame

# Longer names and paths tell no more; the bound keeps a hostile frame as cheap as an honest one.
_CHARACTERS = 600
# A cache entry is at most twice the bound above.
_REMEMBERED = 8192

_JS_FILE = re.compile(
    r"\.(?:[cm]?[jt]sx?|jsbundle|bundle|vue|svelte|html?|hbc)(?:[?#:]|\Z)|\A(?:https?|webpack|app|file|node|capacitor)://?|\[native code\]|\A<anonymous>\Z",
    re.IGNORECASE,
)
_JVM_FILE = re.compile(
    r"\.(?:java|kt|kts|scala|groovy|clj)\Z|\A(?:SourceFile|Unknown Source|Native Method|D8\$\$Synthetic\w*|R8\$\$\w+|PG)\Z"
)
_NATIVE_FILE = re.compile(
    r"\.(?:c|cc|cpp|cxx|m|mm|h|hpp|inc|swift|rs|go|s|S|so[\d.]*|dylib|dll|exe|framework)\Z"
)


class Family(IntEnum):
    """The runtime that a frame came from."""

    JAVASCRIPT = 0
    JVM = 1
    NATIVE = 2
    OTHER = 3


class Role(IntEnum):
    """Whose code a frame is."""

    APP = 0
    LIBRARY = 1
    """A dependency's, or unmarked."""
    PLATFORM = 2
    """The runtime's or the operating system's."""
    SKIPPED = 3
    """Nobody's: reflection, aborting, allocating, crash handlers."""


class Site(NamedTuple):
    """A frame as grouping sees it. `name` is empty where the code has none; `place` is the file or module."""

    role: Role
    name: str
    place: str
    family: Family
    marked: bool
    """Whether the client marked it as the app's."""
    vague: bool
    """The name alone doesn't tell one place: anonymous, or renamed by an obfuscator."""

    @property
    def text(self) -> str:
        """For people, and for the hash."""
        if self.name and self.place:
            return f"{self.name} in {self.place}"
        return self.name or f"<anonymous> in {self.place}"


def family_of(platform: str | None, frame: Frame) -> Family:
    """The runtime of one frame: a native crash can come from an app of any platform."""
    return _family(platform or "", (frame.file or "")[:_CHARACTERS])


def site_of(platform: str | None, frame: Frame) -> Site:
    """The cleaned frame."""
    site = _site(
        platform or "",
        (frame.function or "")[:_CHARACTERS],
        (frame.file or "")[:_CHARACTERS],
        frame.in_app is True,
    )
    return site._replace(role=Role.APP) if frame.__class__ is OwnFrame else site


def is_minified(frame: Frame) -> bool:
    """Whether a JavaScript frame points into a build rather than into source text."""
    column = frame.column or 0
    return (column >= 300 or ".min." in (frame.file or "")[:_CHARACTERS]) and javascript.is_minified(
        (frame.file or "")[:_CHARACTERS], frame.line or 0, column
    )


@lru_cache(maxsize=1024)
def _family(platform: str, file: str) -> Family:
    if _JVM_FILE.search(file):
        return Family.JVM
    if _NATIVE_FILE.search(file):
        return Family.NATIVE
    if _JS_FILE.search(file):
        return Family.JAVASCRIPT
    if platform == "android":
        return Family.JVM
    if platform == "ios":
        return Family.NATIVE
    return Family.OTHER if platform == "python" else Family.JAVASCRIPT


@lru_cache(maxsize=_REMEMBERED)
def _site(platform: str, function: str, file: str, in_app: bool) -> Site:
    family = _family(platform, file)
    if family is Family.JAVASCRIPT or family is Family.OTHER:
        return _javascript_site(function, file, in_app)
    if family is Family.JVM:
        return _jvm_site(function, file, in_app)
    return _native_site(function, in_app)


def _javascript_site(function: str, file: str, in_app: bool) -> Site:
    name = javascript.function_name(function)
    place = javascript.file_name(file)
    if javascript.is_runtime(file):
        role = Role.PLATFORM
    elif in_app and not javascript.is_library(file):
        role = Role.APP
    else:
        role = Role.LIBRARY
    return Site(role, name, place, Family.JAVASCRIPT, in_app, not name)


def _jvm_site(function: str, file: str, in_app: bool) -> Site:
    name = jvm.function_name(function)
    if jvm.is_skipped(function):
        role = Role.SKIPPED
    elif jvm.is_platform(function):
        role = Role.PLATFORM
    elif in_app and not jvm.is_library(function):
        role = Role.APP
    else:
        role = Role.LIBRARY
    # The class stands in the name; obfuscators and builds change the file.
    return Site(role, name, "" if name else file, Family.JVM, in_app, name.endswith("*.*"))


def _native_site(function: str, in_app: bool) -> Site:
    name = native.function_name(function)
    if not name or native.is_helper(name):
        role = Role.SKIPPED
    elif in_app:
        role = Role.APP
    else:
        role = Role.PLATFORM
    return Site(role, name, "", Family.NATIVE, in_app, vague=False)
