"""What processors tell each other about merged issues: counts stay with the fingerprint, its issue is told the sums."""

from typing import Literal

from msgspec import Struct

SignalKind = Literal["join", "joined", "refused", "move", "news", "leave", "left"]


class Figures(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What one fingerprint has counted in its life, and how its newest event describes it; the fields are those of `IssueRecord` with the same names.

    The description is None in figures that were written before they had one.
    """

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
    error_type: str | None = None
    message: str | None = None
    culprit: str | None = None


class News(Struct, frozen=True, array_like=True):
    """One increment as an issue's state judges it.

    `version` is that of the fingerprint's record after it; `partition` and `offset` are those of its source record.
    """

    version: int
    partition: int
    offset: int
    events: int
    releases: dict[str, int]
    users: list[int]
    received_ms: int


class Member(Struct, frozen=True, rename="camel"):
    """A merged fingerprint as its issue knows it: by which merge (`join`), and its figures as of `version`."""

    fingerprint: str
    join: str
    version: int
    figures: Figures


class Pending(Struct, frozen=True, rename="camel"):
    """A merge or unmerge that was asked of another issue and is not answered yet."""

    kind: Literal["join", "leave"]
    command: str
    by: str
    at: str


class Signal(Struct, frozen=True, rename="camel", omit_defaults=True):
    """One message between the records of two issues, on `issue-deltas` in the partition of `issue`.

    `join` asks an issue to become part of the sender, which answers `joined` (with its figures and those of its own members)
    or `refused`; `move` tells a member of what has joined that the sender is its issue now; `news` brings a member's new
    figures; `leave` ends it, answered by `left`. `room` says with a `join` how many fingerprints may come. `join` is the id of the merging command, also as a field of all others.
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
    news: list[News] = []
    members: dict[str, Member] = {}
    reason: str = ""
    room: int = 0
