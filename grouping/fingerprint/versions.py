"""The registry of mechanisms: a fingerprint is stored with the name of the one that made it, and none is edited later."""

from collections.abc import Callable
from typing import NamedTuple

from grouping.fingerprint import v1
from grouping.fingerprint.event_view import GroupingEvent
from grouping.fingerprint.stacks import ErrorLocation


class Mechanism(NamedTuple):
    """A way to group: `decide` gives the deciding step and the parts; `why` says what made the version necessary.

    `locate` is what the stacks say by themselves; both others take it where it is known already.
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
