"""Requested changes of an issue, as the data of a `Command`: read by dashboard, CLI and processors."""

from typing import Annotated, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, structs

from schemas.errors import Detail
from schemas.ids import parse_hex64
from schemas.issues import Status
from schemas.times import parse_iso

NEXT: Final = "next"
"""As `resolvedIn`: the release after the newest known one."""
MAX_COMMENT: Final = 10_000
MAX_RELEASE: Final = 200
MAX_ASSIGNEE: Final = 200
MAX_ISSUES: Final = 100
"""Issues of one merge, or fingerprints of one unmerge."""
MAX_KNOWN: Final = 500
CommandKind = Literal["update", "comment", "merge", "unmerge", "redact", "show"]
"""`redact` is sent by an erasure. `show` changes nothing: the issue's record is published again."""

Many = Annotated[int, Meta(ge=1, le=1_000_000_000)]
Release = Annotated[str, Meta(min_length=1, max_length=MAX_RELEASE, description='a release, or "next"')]
Assignee = Annotated[str, Meta(min_length=1, max_length=MAX_ASSIGNEE)]
Hex = Annotated[str, Meta(pattern="^[0-9a-f]{16}$")]
Hexes = Annotated[tuple[Hex, ...], Meta(min_length=1, max_length=MAX_ISSUES)]
FewHexes = Annotated[tuple[Hex, ...], Meta(max_length=MAX_ISSUES)]


class IgnoreUntil(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The end of ignoring an issue: exactly one of the fields.

    `time` is ISO 8601, `events` a number of further events, `users` a number of further distinct users. With
    `escalating` the issue is ignored until it escalates.
    """

    time: str | None = None
    events: Many | None = None
    users: Many | None = None
    escalating: Literal[True] | None = None


class Update(Struct, frozen=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """Changes the given fields. `resolvedIn` alone resolves, `ignoreUntil` alone ignores; see `violations`."""

    status: Status | UnsetType = UNSET
    resolved_in: Release | UnsetType | None = UNSET
    ignore_until: IgnoreUntil | UnsetType | None = UNSET
    assignee: Assignee | UnsetType | None = UNSET

    @property
    def wanted(self) -> Status | None:
        """The requested status, explicit or implied."""
        if self.status is not UNSET:
            return self.status
        if self.resolved_in not in (UNSET, None):
            return "resolved"
        return "ignored" if self.ignore_until not in (UNSET, None) else None


class UpdateData(Update, frozen=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """The data of `update`. `known` are the project's releases, ordered by their first event."""

    known: Annotated[tuple[str, ...], Meta(max_length=MAX_KNOWN)] = ()


class CommentData(Struct, frozen=True, forbid_unknown_fields=True):
    """The data of `comment`."""

    text: Annotated[str, Meta(min_length=1, max_length=MAX_COMMENT)]


class Merge(Struct, frozen=True, forbid_unknown_fields=True):
    """Issues to merge into another."""

    issues: Hexes


class MergeData(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The data of `merge`: the issues to merge into the command's issue, and fingerprints.

    The fingerprints need not have events yet.
    """

    issues: FewHexes = ()
    fingerprints: FewHexes = ()


class UnmergeData(Struct, frozen=True, forbid_unknown_fields=True):
    """The data of `unmerge`: fingerprints that become separate issues again."""

    fingerprints: Hexes


class RedactData(Struct, frozen=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """The data of `redact`, by which an erasure removes an event's texts from an issue's description.

    If `event` is the newest of the issue's own fingerprint, `newest`, its `message` and its time replace it.
    With `wholly` only numbers and times stay, whichever event is the newest.
    """

    event: str = ""
    newest: str = ""
    message: str = ""
    newest_ms: int = 0
    wholly: bool = False


def violations(update: Update) -> list[Detail]:
    """The violations of an update beyond its types."""
    details = []
    wanted = update.wanted
    if wanted is None and update.assignee is UNSET:
        details.append(Detail("", "one of status, resolvedIn, ignoreUntil and assignee is required"))
    if update.resolved_in not in (UNSET, None) and wanted != "resolved":
        details.append(Detail("resolvedIn", "only with the status resolved"))
    until = update.ignore_until
    if isinstance(until, IgnoreUntil):
        if wanted != "ignored":
            details.append(Detail("ignoreUntil", "only with the status ignored"))
        details += _until_violations(until)
    return details


def _until_violations(until: IgnoreUntil) -> list[Detail]:
    if sum(value is not None for value in structs.astuple(until)) != 1:
        return [Detail("ignoreUntil", "exactly one of time, events, users and escalating")]
    if until.time is not None:
        try:
            parse_iso(until.time)
        except ValueError:
            return [Detail("ignoreUntil.time", "must be an ISO 8601 time with an offset")]
    return []


def is_issue(text: str) -> bool:
    """Whether the text is syntactically an issue id."""
    return parse_hex64(text) is not None
