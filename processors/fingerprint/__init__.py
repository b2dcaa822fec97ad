"""Which events are one problem: a pure, versioned function of an event and a project's rules.

Precedence: project rules > the client's `fingerprint` > stack > message.
"""

from processors.fingerprint.compute import culprit, fingerprint
from processors.fingerprint.forms import GroupingEvent
from processors.fingerprint.key import Fingerprint
from processors.fingerprint.versions import CURRENT_VERSION, VERSIONS, Mechanism

__all__ = [
    "CURRENT_VERSION",
    "VERSIONS",
    "Fingerprint",
    "GroupingEvent",
    "Mechanism",
    "culprit",
    "fingerprint",
]
