"""Messages between processors about merged issues.

Counts stay with the fingerprint, and its issue receives the sums.
"""

from typing import Literal

from msgspec import Struct

SignalKind = Literal["join", "joined", "refused", "move", "news", "leave", "left"]


class Figures(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Lifetime counts of a fingerprint and the description of its newest event; fields as in `IssueRecord`."""

    events: int = 0
    first_seen_ms: int = 0
    last_seen_ms: int = 0
    first_release: str = ""
    last_release: str = ""
    last_event: str = ""
    received_ms: int = 0
    users_sketch: str = ""
    platforms: dict[str, int] = {}
    releases: dict[str, int] = {}
    environments: dict[str, int] = {}
    hours: dict[int, int] = {}
    error_type: str = ""
    message: str = ""
    culprit: str = ""


class NewEvents(Struct, frozen=True, kw_only=True, array_like=True):
    """The parts of an increment that can change an issue's state.

    `version` is the version of the fingerprint's record after it; `partition` and `offset` are those of its
    source record.
    """

    version: int
    partition: int
    offset: int
    events: int
    releases: dict[str, int]
    users: list[int]
    received_ms: int
    environments: list[str] = []


class Member(Struct, frozen=True, rename="camel"):
    """A merged fingerprint in its issue's record: its merge (`join`), and its figures as of `version`."""

    fingerprint: str
    join: str
    version: int
    figures: Figures


class Pending(Struct, frozen=True, kw_only=True, rename="camel"):
    """A merge or unmerge requested from another issue and not yet answered."""

    kind: Literal["join", "leave"]
    command: str
    by: str
    at: str


class Signal(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One message between the records of two issues, on `issue-deltas` in the partition of `issue`.

    `join` asks an issue to become part of the sender; the issue answers `joined` (with its figures and those
    of its members) or `refused`. `move` tells a member of the joined issue that the sender is now its issue;
    `news` carries a member's new figures; `leave` ends the membership and is answered by `left`. It brings back the
    members of a `joined` that nothing waited for. `room` is the number of fingerprints that a `join` may add; if it
    names a `fingerprint`, the issue of this one may have no events yet. The field `join` is the id of the merge
    command in all signals.
    """

    kind: SignalKind
    issue: str
    sender: str
    project_id: str
    join: str
    by: str = ""
    at: str = ""
    fingerprint: str = ""
    version: int = 0
    figures: Figures | None = None
    news: list[NewEvents] = []
    members: dict[str, Member] = {}
    reason: str = ""
    room: int = 0

    @property
    def name(self) -> str:
        """The name under which a record remembers that it has handled the signal."""
        return f"{self.kind}-{self.sender}-{self.join}"
