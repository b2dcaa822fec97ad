"""Links to the source of a frame or a release, by a project's template. Pure."""

import re
from typing import Final
from urllib.parse import quote

from dashboard.view.stack_view import FrameView
from schemas.projects import LINK_FIELD
from schemas.releases import split_release

_OF_FRAME: Final = re.compile(r"\{(?:file|line)\}")
_UP: Final = frozenset({".", ".."})


def frame_link(template: str, release: str, frame: FrameView) -> str:
    """The address of the frame's line; empty without a template, or if the event doesn't have what it needs."""
    if not frame.in_app:
        return ""
    of_frame = {"file": frame.file.lstrip("/"), "line": str(frame.line) if frame.line else ""}
    return _filled(template, _of_release(release) | of_frame)


def release_link(template: str, release: str) -> str:
    """The address of a release: the template up to the frame's part, if it names the release before."""
    front = _OF_FRAME.split(template)[0].rstrip("/")
    return _filled(front, _of_release(release)) if LINK_FIELD.search(front) else ""


def _of_release(release: str) -> dict[str, str]:
    return {"release": release} | split_release(release)._asdict()


def _filled(template: str, values: dict[str, str]) -> str:
    needed = [values[name] for name in LINK_FIELD.findall(template)]
    # Events are anyone's: none may lead out of the template's folder.
    if not all(needed) or any(not _UP.isdisjoint(value.split("/")) for value in needed):
        return ""
    return LINK_FIELD.sub(
        lambda found: quote(values[found[1]], "/" if found[1] == "file" else "", errors="replace"), template
    )
