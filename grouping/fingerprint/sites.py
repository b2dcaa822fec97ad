"""Sites of frames by their names in the source.

The file of a JavaScript frame has its folder. Helpers don't suffice alone.
"""

from functools import lru_cache

from grouping.fingerprint.event_view import GroupingFrame, OwnFrame
from grouping.fingerprint.folders import file_with_folder
from grouping.fingerprint.frames import CHARACTERS, Family, Role, Site, cleaned, family_of
from grouping.fingerprint.helpers import is_helper
from grouping.fingerprint.source_names import source_file, source_name

# A cache entry has at most a function and a file of `CHARACTERS`.
_REMEMBERED = 8192


def site_of(platform: str | None, frame: GroupingFrame) -> Site:
    """The site of a frame, by its platform, function, file and mark; what a project's rule marks is the app's."""
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
    family = family_of(platform, file)
    file = source_file(file)
    site = cleaned(family, source_name(function, family, file), file, in_app)
    if site.role is not Role.APP:
        return site
    vague = (
        site.vague
        or (family is Family.JVM and site.name.rpartition(".")[0].endswith("*"))
        or (family is Family.JVM and is_helper(site.name.rpartition(".")[0], awaited=True))
        or (family is not Family.NATIVE and is_helper(site.name, awaited=family is Family.JAVASCRIPT))
    )
    if family is Family.JAVASCRIPT and "/" not in site.module:
        return site._replace(module=file_with_folder(file, site.module), vague=vague, foldered=True)
    return site._replace(vague=vague)
