"""Fingerprints of events: a pure function of an event and a project's rules. A released version is never edited.

Precedence: project rules > the client's `fingerprint` > stack > message.
"""

from grouping.fingerprint.compute import fingerprint, grouped
from grouping.fingerprint.event_view import GroupingEvent
from grouping.fingerprint.key import Fingerprint
from grouping.fingerprint.mechanism import culprit, locate
from grouping.fingerprint.why import why

__all__ = [
    "Fingerprint",
    "GroupingEvent",
    "culprit",
    "fingerprint",
    "grouped",
    "locate",
    "why",
]
