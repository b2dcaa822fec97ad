"""Sites of version 2: frames by their names in the source, JavaScript files with their folder, and helpers that don't suffice alone."""

from functools import lru_cache

from grouping.fingerprint.event_view import GroupingFrame
from grouping.fingerprint.folders import file_with_folder
from grouping.fingerprint.frames import Family, Role, Site, cleaned, family_of, read_frame
from grouping.fingerprint.helpers import is_helper
from grouping.fingerprint.source_names import source_file, source_name

_REMEMBERED = 8192


def source_site_of(platform: str | None, frame: GroupingFrame) -> Site:
    """The cleaned frame, as version 2 reads it."""
    return read_frame(platform, frame, to_source_site)


@lru_cache(maxsize=_REMEMBERED)
def to_source_site(platform: str, function: str, file: str, in_app: bool) -> Site:
    """As `frames.to_site`."""
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
