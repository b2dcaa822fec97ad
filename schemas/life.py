"""What an issue's record keeps for its own processing only: not part of what readers are promised."""

from msgspec import Struct

from schemas.merges import Figures, Member, Pending

MAX_COMMANDS = 64
"""Ids of commands that a record remembers: the same one sent again within so many changes nothing."""
MAX_SIGNALS = 300
"""Signals that a record remembers, and commands that it refused or passed on, for the same reason; news have versions."""


class Fix(Struct, frozen=True, rename="camel", omit_defaults=True):
    """How it is known whether an event came after the fix.

    `boundaries` are releases: the one of the fix, or with `after` the newest of each app when the fix was to come in the
    next one. `older` are releases that are known to be older though the names of the boundaries don't tell; what is older than
    one of them by its own name is older, too.
    """

    boundaries: tuple[str, ...]
    after: bool = False
    older: tuple[str, ...] = ()


class Ignored(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What has come in since the issue is ignored."""

    events: int = 0
    users_sketch: str = ""


class Life(Struct, frozen=True, rename="camel", omit_defaults=True):
    """`applied` is the offset on `issue-deltas` of the last command or signal that is in, `join` the merge that it is a part by.

    `fix` is None for an issue resolved without a release; `home` holds its own fingerprint's figures where `members` add theirs.
    """

    applied: int = -1
    commands: tuple[str, ...] = ()
    signals: tuple[str, ...] = ()
    fix: Fix | None = None
    ignored: Ignored | None = None
    join: str = ""
    pending: dict[str, Pending] = {}
    members: dict[str, Member] = {}
    home: Figures | None = None
