"""Every error that the wire can say, declared once (protocol, section 7; contract, section 2)."""

from enum import Enum

from msgspec import Struct


class WireError(Enum):
    """An error code: (code, HTTP status, may the client send the same again, what it means)."""

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
    INTERNAL = ("internal", 500, True, "a fault of the server")
    DAMAGED = (
        "damagedPayload",
        502,
        True,
        "the stored content of this event can't be read; all else of it can",
    )
    UNAVAILABLE = ("internal", 503, True, "a part of the server is away; Retry-After says when to try again")

    def __init__(self, code: str, status: int, retryable: bool, sentence: str) -> None:
        self.code = code
        self.status = status
        self.retryable = retryable
        self.sentence = sentence


class Detail(Struct, frozen=True):
    """One violation: the dotted path with list positions in brackets, and what was expected there."""

    field: str
    message: str


class ErrorBody(Struct, frozen=True, omit_defaults=True):
    """Body of every answer that is not a success."""

    error: str
    details: list[Detail] | None = None
    retryAfterMs: int | None = None


class RejectedEvent(Struct, frozen=True):
    """An event of a batch that was refused (section 2.9)."""

    index: int
    error: str
    details: list[Detail]


class BatchResponse(Struct, frozen=True):
    """Answer to a batch whose wrapper is valid (section 2.9)."""

    accepted: int
    rejected: int
    errors: list[RejectedEvent]
