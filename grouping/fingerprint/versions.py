"""The registry of grouping versions: fingerprints are stored with their version's name, and versions never change."""

from collections.abc import Callable
from typing import NamedTuple

from grouping.fingerprint import v1
from grouping.fingerprint.event_view import GroupingEvent
from grouping.fingerprint.stacks import ErrorLocation


class Mechanism(NamedTuple):
    """A grouping version: `decide` returns the deciding step and the parts; `why` is the reason for the version.

    `locate` returns the location by the stacks alone; the others accept it if already known.
    """

    decide: Callable[[GroupingEvent, ErrorLocation | None], tuple[str, tuple[str, ...]]]
    culprit: Callable[[GroupingEvent, ErrorLocation | None], str]
    locate: Callable[[GroupingEvent], ErrorLocation]
    why: str


VERSIONS: dict[str, Mechanism] = {
    "v1": Mechanism(
        v1.decide,
        v1.culprit,
        v1.locate,
        "the first: type, engine-neutral fault and cleaned frames; no line, no release",
    ),
}

CURRENT_VERSION = "v1"
