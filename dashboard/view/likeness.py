"""What the stacks of two issues have in common and what not, for people who decide whether both are one. Pure."""

from collections.abc import Iterable
from typing import Final

from grouping.alike import NamedFrame, Trace

_SHOWN: Final = 3


def difference(here: Trace | None, there: Trace | None) -> str:
    """A sentence about the own frames of two errors with the same types and fault; empty for others."""
    if here is None or there is None or here.kind != there.kind:
        return ""
    ours, theirs = list(dict.fromkeys(here.frames)), list(dict.fromkeys(there.frames))
    common = [frame for frame in ours if frame.name and frame in theirs]
    sentences = (
        ("both", common),
        ("only here", [frame for frame in ours if frame not in theirs]),
        ("only there", [frame for frame in theirs if frame not in ours]),
    )
    return "Same fault; " + "; ".join(f"{what} {_listed(frames)}" for what, frames in sentences if frames)


def _listed(frames: Iterable[NamedFrame]) -> str:
    names = [frame.name or f"<anonymous> in {frame.module}" for frame in frames]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
