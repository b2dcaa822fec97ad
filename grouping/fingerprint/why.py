"""Why an event has its parts, in sentences: the deciding frame, the dropped parts, and the facts behind them. Pure."""

from collections.abc import Iterator

from grouping.fingerprint import built_files, faults
from grouping.fingerprint.event_view import GroupingError, GroupingEvent, GroupingFrame
from grouping.fingerprint.frames import CHARACTERS, Family, FrameRole, Site, family_of
from grouping.fingerprint.made_names import class_name, source_name, who_made
from grouping.fingerprint.mechanism import chain_of, locate, near_name, why_uncounted
from grouping.fingerprint.sites import site_of
from grouping.fingerprint.stacks import ErrorLocation, ErrorSite

_WHOSE = {
    FrameRole.APP: "the topmost frame of the app",
    FrameRole.LIBRARY: "the topmost frame of a library, since none is the app's",
    FrameRole.PLATFORM: "the topmost frame of the platform, since none is the app's or a library's",
}


def why(event: GroupingEvent, rule: str, location: ErrorLocation | None = None) -> list[str]:
    """Sentences on the grouping of an event by a `rule`, as the fingerprint names it."""
    if rule == "client":
        return ["The client's fingerprint decided."]
    if rule.startswith("rule:"):
        return [f"The project's rule `{rule.removeprefix('rule:')}` decided."]
    index, error_sites = location or locate(event)
    chain = chain_of(event.error)
    if index is None:
        return ["No frame tells where it failed, so the message decided.", *_of_class(chain[-1])]
    return [*_of_stack(event.platform, chain[index], error_sites[index], is_cause=index > 0)]


def _of_stack(
    platform: str | None, error: GroupingError, found: ErrorSite, *, is_cause: bool
) -> Iterator[str]:
    frames = [_frame(platform, error, site) for site in found.sites]
    where = " of the innermost cause that shows one" if is_cause else ""
    if found.minified:
        yield f"`{_text(found.sites[0].file)}` decided: the file of {_WHOSE[found.role]}{where}."
        yield "Names of functions don't count in it: a build changes them."
        if near := near_name(error, found):
            yield f"`{_text(near)}` counts all the same: builds keep names of five letters and more."
    else:
        yield f"`{_text(found.sites[0].text)}` decided: {_WHOSE[found.role]}{where}."
        if len(found.sites) > 1:
            yield (
                f"`{_text(found.sites[1].text)}` decided too: the first has no name that tells, or only checks or"
                " passes on."
            )
    for site, frame in zip(found.sites, frames, strict=True):
        yield from _dropped(site, platform or "", frame)
    yield from _of_class(error)
    yield from _of_message(error, found)


def _dropped(site: Site, platform: str, frame: GroupingFrame) -> Iterator[str]:
    function, file = (frame.function or "")[:CHARACTERS], (frame.file or "")[:CHARACTERS]
    family = family_of(platform, file)
    yield from [f"{sentence}." for sentence in who_made(function, family)]
    if (name := source_name(function, family, file)) and not site.name:
        yield f"`{name}` is no name in the source."
    elif name != site.name:
        yield f"`{name}` is read as `{site.name}`: the rest differs by engine, compiler or build."
    if family is Family.JAVASCRIPT and (found := built_files.hash_in(file)):
        yield f"`{found}` is a hash that a bundler makes of the contents."
    if family is Family.OTHER and (found := built_files.deployed_folder(file)):
        yield f"`{found}` is a folder that a deployment makes."


def _of_class(error: GroupingError) -> Iterator[str]:
    kind = error.type or ""
    if class_name(kind) != kind:
        yield f"The class `{kind}` is read as `{class_name(kind)}`.".replace("\0", "\\0")


def _of_message(error: GroupingError, found: ErrorSite) -> Iterator[str]:
    kind = class_name(error.type or "")
    if found.sites[0].family is Family.JAVASCRIPT:
        known = faults.fault(*faults.thrown(kind, error.message or ""))
        worded = f"Engines word this fault differently: it is `{known}`."
        yield worded if known else "The message counts: the app worded it."
    elif reason := why_uncounted(kind, found):
        yield f"The message doesn't count: {reason}."
    elif found.role is FrameRole.APP and not found.sites[0].vague:
        yield "The message counts: the app worded it."


def _frame(platform: str | None, error: GroupingError, site: Site) -> GroupingFrame:
    return next(
        (frame for frame in error.stack or () if site_of(platform, frame) == site), GroupingFrame(site.name)
    )


def _text(name: str) -> str:
    """A name as code: a backtick would end it."""
    return name.replace("`", "'")
