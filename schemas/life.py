"""State in an issue's record that only the processors use; not part of the public schema."""

from collections.abc import Iterable

from msgspec import Struct

from schemas.merges import Figures, Member, Pending

MAX_COMMANDS = 64
"""Command ids that a record remembers, to ignore repeats."""
MAX_SIGNALS = 300
"""Signals, and refused or forwarded commands, that a record remembers for the same reason; news have versions."""


def refused(command: str) -> str:
    """The name under which a record remembers a command that it refused."""
    return f"command-{command}"


def forwarded(command: str, target: str) -> str:
    """The name under which a record remembers a command that it forwarded to an issue.

    A repeat goes to the same one, which knows it, even if the record has been merged into another since.
    """
    return f"{refused(command)} to {target}"


def destination(command: str, signals: Iterable[str]) -> str | None:
    """The issue that a record forwarded a command to; empty if it refused it, None if it knows nothing of it."""
    name = refused(command)
    found = (signal.partition(" to ") for signal in signals)
    return next((target for known, _, target in found if known == name), None)


class Fix(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Decides whether an event came after the fix.

    `boundaries` are releases: the release of the fix or, with `after`, the newest of each app when the fix
    was announced for the next one. `older` are releases known to be older although a comparison with the
    boundaries is inconclusive; releases older than one of them are older, too.
    """

    boundaries: tuple[str, ...]
    after: bool = False
    older: tuple[str, ...] = ()


class Ignored(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Counts since the issue was ignored."""

    events: int = 0
    users_sketch: str = ""


class Life(Struct, frozen=True, rename="camel", omit_defaults=True):
    """State behind an issue's record that its aggregator needs.

    `applied` is the offset on `issue-deltas` of the last applied command or signal, `join` the merge that made it a
    member.

    `fix` is None for an issue resolved without a release; `home` has its own fingerprint's figures if there
    are `members`. `reached` is the highest milestone of users that was published. `since` is the offset on
    `issue-deltas` of the record that opened the issue, -1 if the record was rebuilt.
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
    reached: int = 0
    since: int = -1
