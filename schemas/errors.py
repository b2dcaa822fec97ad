"""All error codes of responses (protocol, section 7; contract, section 2), and the exceptions shared between packages.

Exceptions of Kafka are in `broker.errors`, those of ClickHouse in `storage.errors`.
"""

from enum import Enum

from msgspec import Struct


class WireError(Enum):
    """An error code: (code, HTTP status, whether the client may retry the request, meaning)."""

    VALIDATION_FAILED = (
        "validationFailed",
        400,
        False,
        "the request or an event of it breaks the schema or a limit",
    )
    UNAUTHORIZED = ("unauthorized", 401, False, "the token is missing, malformed or unknown")
    FORBIDDEN = ("forbidden", 403, False, "the session may not do this")
    NOT_FOUND = ("notFound", 404, False, "there is nothing at this path")
    METHOD_NOT_ALLOWED = ("methodNotAllowed", 405, False, "the path takes other methods, named by Allow")
    CONFLICT = (
        "conflict",
        409,
        False,
        "the change contradicts the present state, or its Idempotency-Key was used for another request",
    )
    PAYLOAD_TOO_LARGE = ("payloadTooLarge", 413, False, "the decoded body is larger than 1,048,576 bytes")
    RATE_LIMITED = (
        "rateLimited",
        429,
        True,
        "the token's requests of the last 60 s are used up, or its unanswered bodies are too many",
    )
    INTERNAL = ("internal", 500, True, "an error of the server")
    DAMAGED = (
        "damagedPayload",
        502,
        True,
        "the stored content of this event can't be read; its other data can",
    )
    UNAVAILABLE = (
        "internal",
        503,
        True,
        "a part of the server is unavailable; Retry-After says when to retry",
    )

    def __init__(self, code: str, status: int, retryable: bool, sentence: str) -> None:
        self.code = code
        self.status = status
        self.retryable = retryable
        self.sentence = sentence


class Detail(Struct, frozen=True):
    """One violation: the dotted path of a field, with list positions in brackets, and the expected value."""

    field: str
    message: str


class ErrorBody(Struct, frozen=True, omit_defaults=True):
    """Body of every error response."""

    error: str
    details: list[Detail] | None = None
    retryAfterMs: int | None = None


class RejectedEvent(Struct, frozen=True):
    """A rejected event of a batch (section 2.9)."""

    index: int
    error: str
    details: list[Detail]


class BatchResponse(Struct, frozen=True):
    """Response to a batch whose wrapper is valid (section 2.9)."""

    accepted: int
    rejected: int
    errors: list[RejectedEvent]


class QueryError(Exception):
    """A syntax error in a query.

    `position` counts code points from 0, `expected` lists the allowed continuations, `message` joins both for
    people.
    """

    def __init__(self, position: int, expected: str) -> None:
        self.position = position
        self.expected = expected
        self.message = f"at position {position}: expected {expected}"
        super().__init__(self.message)


class Unreadable(Exception):
    """The bytes are not an event."""


class SourceLost(Exception):
    """`events` no longer has the record that a decision is about."""


class KeyReused(Exception):
    """The key was used for another request; nothing was changed."""


class BadPayload(Exception):
    """The bytes are no pack of payloads."""


class BadSetting(Exception):
    """A setting is unknown, missing or has a bad value; the text names the variable in one line."""


class BadChange(Exception):
    """The change is invalid; `details` names each field (as on the wire) and its requirement."""

    def __init__(self, details: list[Detail]) -> None:
        super().__init__("; ".join(f"{detail.field}: {detail.message}" for detail in details))
        self.details = details


class ChangeRefused(Exception):
    """The change conflicts with the current state; the text says how."""


class ChangesUnavailable(Exception):
    """The change can't be made now; unless it is a ChangePending, nothing was sent."""


class ChangePending(ChangesUnavailable):
    """The change was sent, but not confirmed in time: it may still be applied.

    Retrying the same command applies it once.
    """


class ProjectsUnavailable(Exception):
    """Kafka did not answer in time; a pending write may or may not have succeeded."""


class AnotherProgram(Exception):
    """The program at an address is none of ours."""


class CannotRun(RuntimeError):
    """A process, or a server that it needs, can't start or continue; the text names the cause and the remedy."""


class EraseRefused(Exception):
    """Nothing was erased: there is no such project or user, or another erasure is in progress."""


class PipelineNotIdle(Exception):
    """Earlier events are still in the pipeline; work that waits for them can be resumed."""


class RebuildRefused(Exception):
    """The tables can't be rebuilt now; the text names the cause and the remedy."""
