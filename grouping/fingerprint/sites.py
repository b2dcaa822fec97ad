"""Sites of frames by their names in the source."""

import re
from functools import lru_cache

from grouping.fingerprint import built_files, javascript, jvm, native, scripts
from grouping.fingerprint.event_view import GroupingFrame, OwnFrame
from grouping.fingerprint.frames import CHARACTERS, Family, FrameRole, Site, family_of
from grouping.fingerprint.helpers import is_helper
from grouping.fingerprint.made_names import source_name

# SpiderMonkey and V8 name evaluated code by the line that evaluates it.
_EVALUATED = re.compile(r" line \d+ > .*\Z")
# V8 names code in `eval` by the chain of those that evaluate it, the outermost last (its stack trace API).
_EVALUATING = re.compile(r"eval at ([^\s()]+) \(([^()]+?)(?::\d+){0,2}\)")
# A cache entry has at most a function and a file of `CHARACTERS`.
_REMEMBERED = 8192
# No compiler of JavaScript makes long names, as those of C++ and Swift do.
_JAVASCRIPT_CHARACTERS = 120


def site_of(platform: str | None, frame: GroupingFrame) -> Site:
    """The site of a frame, by its platform, function, file and mark; a project's rule can mark it as the app's."""
    site = to_site(
        platform or "",
        (frame.function or "")[:CHARACTERS],
        (frame.file or "")[:CHARACTERS],
        frame.in_app is True,
    )
    return site._replace(role=FrameRole.APP) if frame.__class__ is OwnFrame else site


@lru_cache(maxsize=_REMEMBERED)
def to_site(platform: str, function: str, file: str, in_app: bool) -> Site:
    """Remembered, since frames recur in nearly every event of a program."""
    if file.startswith("eval at "):
        function, file = _evaluating(function, file)
    family = family_of(platform, file)
    if " > " in file:
        file = _EVALUATED.sub("", file)
    if family is Family.JAVASCRIPT:
        return _javascript_site(source_name(function[:_JAVASCRIPT_CHARACTERS], family, file), file, in_app)
    function_in_source = source_name(function, family, file)
    if family is Family.JVM:
        return _jvm_site(function, function_in_source, file, in_app)
    if family is Family.NATIVE:
        return _native_site(function_in_source, file, in_app)
    return _script_site(function_in_source, file, in_app)


def _evaluating(function: str, file: str) -> tuple[str, str]:
    """The function that evaluates, and its file."""
    found = _EVALUATING.search(file)
    return (found[1], found[2]) if found else (function, file)


def _javascript_site(function: str, file: str, in_app: bool) -> Site:
    name = javascript.function_name(function)
    module = built_files.script_name(file)
    if javascript.is_runtime(file):
        role = FrameRole.PLATFORM
    elif in_app and not javascript.is_library(file):
        role = FrameRole.APP
    else:
        role = FrameRole.LIBRARY
    foldered = role is FrameRole.APP and "/" not in module
    if foldered:
        module = built_files.with_folder(file, module)
    return Site(role, name, module, Family.JAVASCRIPT, in_app, not name or is_helper(name), foldered)


def _jvm_site(sent: str, function: str, file: str, in_app: bool) -> Site:
    name = jvm.function_name(function)
    role = jvm.owner(function) or (FrameRole.APP if in_app else FrameRole.LIBRARY)
    if jvm.is_synthetic(sent):
        role = FrameRole.SKIPPED
    # The name has the class; obfuscators and builds change the file.
    module = "" if name else file
    owning, _, method = name.rpartition(".")
    vague = owning.endswith("*") or is_helper(method) or is_helper(owning.rpartition(".")[2])
    return Site(role, name, module, Family.JVM, in_app, vague)


def _script_site(function: str, file: str, in_app: bool) -> Site:
    name = scripts.function_name(function)
    if scripts.is_library(file):
        role = FrameRole.LIBRARY
    elif scripts.is_runtime(file):
        role = FrameRole.PLATFORM
    elif scripts.is_comprehension(function):
        role = FrameRole.SKIPPED
    else:
        role = FrameRole.APP if in_app else FrameRole.LIBRARY
    module = built_files.file_with_folder(file)
    return Site(role, name, module, Family.OTHER, in_app, not name or is_helper(name))


def _native_site(function: str, file: str, in_app: bool) -> Site:
    name = native.function_name(function)
    if not name or native.is_helper(name) or native.is_machinery(file):
        role = FrameRole.SKIPPED
    else:
        role = FrameRole.APP if in_app else FrameRole.PLATFORM
    return Site(role, name, "", Family.NATIVE, in_app, vague=False)
