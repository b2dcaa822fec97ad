"""Records of issues in the topics: commands as input, aggregates and activity as output (contract, section 3)."""

from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from schemas.life import Life
from schemas.merges import Signal
from schemas.times import HOUR_MS

Status = Literal["open", "resolved", "ignored"]
ActivityKind = Literal[
    "created", "regressed", "resolved", "ignored", "reopened", "merged", "unmerged", "assigned", "commented",
    "seenInRelease", "seenInEnvironment", "usersReached", "escalated"
]  # fmt: skip
FINDINGS: Final = frozenset({"seenInRelease", "seenInEnvironment", "usersReached", "escalated"})
"""Kinds of activity that change no state: first occurrences found in events."""

NEW_MS: Final = 24 * HOUR_MS
"""How long an issue counts as new after its first event."""
SYSTEM: Final = "system"
"""Who makes the changes that events cause."""
REBUILD: Final = "rebuild"
"""Who ends merges and unmerges that a rebuild found under way."""
ESCALATING_MS: Final = 24 * HOUR_MS
"""How long an issue counts as escalating after its rate rose; until then it doesn't escalate again."""


def issue_title(error_type: str, message: str) -> str:
    """The title of an issue wherever people meet it, on one line: `KeyError: 7`."""
    return ": ".join(filter(None, (" ".join(text.split()) for text in (error_type, message))))


class Command(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A requested change of an issue, ordered with the increments of its issue.

    The requester creates `id`; a command is applied once per id. An empty `project_id` is any project.
    """

    id: str
    issue: str
    project_id: str
    kind: str
    by: str
    at: str
    data: dict[str, Any] = {}


class DeltaRecord(Struct, frozen=True, omit_defaults=True):
    """A value of `issue-deltas` that is an object: a command, or a signal between issues.

    Increments are in `schemas.increments`.
    """

    command: Command | None = None
    signal: Signal | None = None


class IssueFields(Struct, rename="camel", kw_only=True):
    """The fields of an `IssueRecord`."""

    id: str
    project_id: str
    fingerprints: tuple[str, ...]
    error_type: str
    message: str
    culprit: str
    status: Status = "open"
    regressed: bool = False
    platforms: dict[str, int] = {}
    first_seen_ms: int
    last_seen_ms: int
    events: int = 0
    users: int = 0
    users_sketch: str = ""
    releases: dict[str, int] = {}
    first_release: str = ""
    last_release: str = ""
    environments: dict[str, int] = {}
    hours: dict[int, int] = {}
    last_event: str = ""
    assignee: str | None = None
    resolved_in: str | None = None
    ignore_until: dict[str, Any] | None = None
    grouping_version: str = ""
    grouping_rule: str = ""
    grouping_parts: tuple[str, ...] = ()
    version: int = 0
    positions: dict[int, int] = {}
    received_ms: int = 0
    merged_into: str | None = None
    escalated_ms: int = 0
    life: Life = Life()


class IssueRecord(IssueFields, frozen=True, kw_only=True, rename="camel"):  # type: ignore[misc]  # allowed
    """One value of the compacted topic `issues`: aggregate and state. Keyed by the issue's id in hexadecimal.

    `events` and `users` are lifetime counts; `users` is estimated from `users_sketch`. `positions` has, for
    each source partition, the offset up to which increments are applied (repeats are dropped by it).
    `version` increases by one with each change, so the highest is the newest. `escalated_ms` is when its rate
    last rose far above its own past, 0 for never. `fingerprints` are its own and those of issues merged into
    it, whose counts it includes; a record with `merged_into` is merged. `life` is for the processors.
    """


class Subject(Struct, frozen=True, rename="camel", omit_defaults=True):
    """An issue right after an activity caused by an event, and the event's origin; of its texts only the error's type.

    Times are Unix ms; `release` and `environment` are the event's, the rest as in `IssueRecord`.
    """

    error_type: str = ""
    platform: str = ""
    release: str = ""
    environment: str = ""
    first_release: str = ""
    first_seen_ms: int = 0
    last_seen_ms: int = 0
    events: int = 0
    users: int = 0
    status: Status = "open"
    regressed: bool = False
    assignee: str = ""
    escalated_ms: int = 0


class Activity(Struct, frozen=True, rename="camel"):
    """One value of `issue-activity`: a change of an issue. The id is derived from the cause, so repeats are equal.

    Activities that an event caused have a `subject`. `version` is that of the issue's record after the change.
    """

    id: str
    issue: str
    project_id: str
    kind: ActivityKind
    by: str
    at: str
    data: dict[str, Any] = {}
    subject: Subject | None = None
    version: int = 0


Refusal = Literal["invalid", "tooLarge", "rateLimited"]
"""How the edge ends an event that it doesn't accept."""
OutcomeKind = Literal["accepted", "duplicate", Refusal, "deadLettered", "ruleSkipped", "revokedToken"]
OUTCOME_LABELS: Final[dict[str, str]] = {
    "accepted": "Accepted",
    "duplicate": "Duplicate",
    "invalid": "Invalid",
    "tooLarge": "Too large",
    "rateLimited": "Rate limited",
    "deadLettered": "Dead-lettered",
}
"""The outcomes of events, for people, in the order of pages."""
RULE_SKIPPED: Final = "ruleSkipped"
"""Counts events on which a grouping rule was skipped. The reason is `tooExpensive` or `failed`, `/` and its name."""
REVOKED: Final = "revokedToken"
"""Counts requests with a revoked token, whose events are not read.

The reason is the token's last four characters.
"""
NOT_OF_EVENTS: Final = (RULE_SKIPPED, REVOKED)
"""Kinds that are no outcome of an event: sums leave them out."""


class Outcome(Struct, frozen=True, rename="camel", omit_defaults=True):
    """One value of `outcomes`: the events (or refused requests) of a minute with an outcome.

    Those of `NOT_OF_EVENTS` are excluded from sums.

    `source` and `sequence` are the process and its count of flushes; a record with a known pair is a repeat.
    `example` is the response to the sender of one of them; of its event it has only release and id.
    """

    project_id: str
    minute: str
    sdk: str
    outcome: OutcomeKind
    reason: str
    count: int
    source: str
    sequence: int
    example: str = ""


_json = msgspec.json.Encoder()
encode_json = _json.encode
decode_delta = msgspec.json.Decoder(DeltaRecord).decode
decode_issue = msgspec.json.Decoder(IssueRecord).decode
decode_activity = msgspec.json.Decoder(Activity).decode
_decode_outcomes = msgspec.json.Decoder(list[Outcome] | Outcome).decode


def decode_outcomes(value: bytes) -> list[Outcome]:
    """The outcomes of a value of `outcomes`: a single one or an array."""
    decoded = _decode_outcomes(value)
    return decoded if isinstance(decoded, list) else [decoded]
