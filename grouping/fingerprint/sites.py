"""Sites of frames by their names in the source.

The file of a JavaScript frame has its folder. Helpers don't suffice alone.
"""

import re
from functools import lru_cache

from grouping.fingerprint.event_view import GroupingFrame, OwnFrame
from grouping.fingerprint.folders import file_with_folder
from grouping.fingerprint.frames import CHARACTERS, Family, Role, Site, cleaned, family_of
from grouping.fingerprint.helpers import is_helper
from grouping.fingerprint.made_names import source_name

# SpiderMonkey and V8 name evaluated code by the line that evaluates it.
_EVALUATED = re.compile(r" line \d+ > .*\Z")
# V8 names code in `eval` by the chain of those that evaluate it, the outermost last (its stack trace API).
_EVALUATING = re.compile(r"eval at ([^\s()]+) \(([^()]+?)(?::\d+){0,2}\)")
# A cache entry has at most a function and a file of `CHARACTERS`.
_REMEMBERED = 8192


def site_of(platform: str | None, frame: GroupingFrame) -> Site:
    """The site of a frame, by its platform, function, file and mark; a project's rule can mark it as the app's."""
    site = to_site(
        platform or "",
        (frame.function or "")[:CHARACTERS],
        (frame.file or "")[:CHARACTERS],
        frame.in_app is True,
    )
    return site._replace(role=Role.APP) if frame.__class__ is OwnFrame else site


@lru_cache(maxsize=_REMEMBERED)
def to_site(platform: str, function: str, file: str, in_app: bool) -> Site:
    """Remembered, since frames recur in nearly every event of a program."""
    if file.startswith("eval at "):
        function, file = _evaluating(function, file)
    family = family_of(platform, file)
    file = _EVALUATED.sub("", file) if " > " in file else file
    site = cleaned(family, function, source_name(function, family, file), file, in_app)
    if site.role is not Role.APP:
        return site
    vague = (
        site.vague
        or (family is Family.JVM and site.name.rpartition(".")[0].endswith("*"))
        or (family is Family.JVM and is_helper(site.name.rpartition(".")[0]))
        or (family is not Family.NATIVE and is_helper(site.name))
    )
    if family is Family.JAVASCRIPT and "/" not in site.module:
        return site._replace(module=file_with_folder(file, site.module), vague=vague, foldered=True)
    return site._replace(vague=vague)


def _evaluating(function: str, file: str) -> tuple[str, str]:
    """The function that evaluates, and its file."""
    found = _EVALUATING.search(file)
    return (found[1], found[2]) if found else (function, file)
