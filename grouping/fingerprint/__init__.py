"""Fingerprints of events: a pure, versioned function of an event and a project's rules.

Precedence: project rules > the client's `fingerprint` > stack > message.
"""

from grouping.fingerprint.compute import culprit, fingerprint, grouped, locate
from grouping.fingerprint.event_view import GroupingEvent
from grouping.fingerprint.key import Fingerprint
from grouping.fingerprint.mechanism import Mechanism
from grouping.fingerprint.versions import CURRENT_VERSION, VERSIONS, known_version

__all__ = [
    "CURRENT_VERSION",
    "VERSIONS",
    "Fingerprint",
    "GroupingEvent",
    "Mechanism",
    "culprit",
    "fingerprint",
    "grouped",
    "known_version",
    "locate",
]
