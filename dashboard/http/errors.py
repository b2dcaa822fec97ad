"""What the dashboard refuses, and with what: every error of its own and of the parts below becomes one `HttpError`."""

from aiohttp import web

from schemas.errors import (
    BadChange,
    ChangeRefused,
    ChangesUnavailable,
    Detail,
    KeyReused,
    ProjectsUnavailable,
    WireError,
)
from storage.errors import BadQuery, DamagedPayload, NotFound, QueryTooExpensive, StorageUnavailable

RETRY_AFTER_SECONDS = 2


class HttpError(Exception):
    """An answer that is an error: which one, what is wrong in the request, and headers that go with it."""

    def __init__(
        self,
        error: WireError,
        details: list[Detail] | None = None,
        headers: dict[str, str] | None = None,
        sentence: str = "",
    ) -> None:
        super().__init__(sentence or error.sentence)
        self.error = error
        self.details = details
        self.headers = headers or {}
        self.sentence = sentence or error.sentence


def not_found(sentence: str) -> HttpError:
    """There is nothing of this name."""
    return HttpError(WireError.NOT_FOUND, sentence=sentence)


def invalid(field: str, message: str) -> HttpError:
    """One field of the request is wrong."""
    return HttpError(WireError.VALIDATION_FAILED, [Detail(field, message)])


def unavailable(sentence: str) -> HttpError:
    """A part below doesn't answer; the same request may work soon."""
    return HttpError(
        WireError.UNAVAILABLE, headers={"Retry-After": str(RETRY_AFTER_SECONDS)}, sentence=sentence
    )


def rate_limited(wait_seconds: float) -> HttpError:
    """Too many wrong passwords."""
    seconds = max(1, int(-(-wait_seconds // 1)))
    return HttpError(
        WireError.RATE_LIMITED,
        headers={"Retry-After": str(seconds)},
        sentence=f"too many wrong passwords: try again in {seconds} s",
    )


_BY_STATUS = {
    403: WireError.FORBIDDEN,
    404: WireError.NOT_FOUND,
    405: WireError.METHOD_NOT_ALLOWED,
    413: WireError.PAYLOAD_TOO_LARGE,
}


def refusal_of(error: Exception) -> HttpError | None:
    """The answer that a declared error means; None for a fault of our own."""
    refused = None
    match error:
        case HttpError():
            refused = error
        case web.HTTPException():
            refused = _of_http(error)
        case BadChange():
            refused = HttpError(WireError.VALIDATION_FAILED, error.details)
        case ProjectsUnavailable():
            refused = unavailable("projects can't be read or written at the moment: Kafka doesn't answer")
        case ChangesUnavailable():
            refused = unavailable("the change was not confirmed in time: processors or Kafka don't answer")
        case ChangeRefused():
            refused = HttpError(WireError.CONFLICT, sentence=str(error))
        case KeyReused():
            refused = HttpError(
                WireError.CONFLICT, [Detail("Idempotency-Key", "was used for another request")]
            )
        case BadQuery():
            refused = invalid(error.field, error.message)
        case QueryTooExpensive():
            refused = invalid("query", f"reads too much: {error}")
        case DamagedPayload():
            refused = _damaged(error)
        case NotFound():
            refused = not_found(str(error))
        case StorageUnavailable():
            refused = unavailable(f"events can't be read at the moment: {error}")
    return refused


def _damaged(error: DamagedPayload) -> HttpError:
    """Its neighbours go with it: whoever walks through the events gets past the damaged one."""
    found = error.detail
    beside = {"previousEventId": found.previous_event_id, "nextEventId": found.next_event_id}
    details = [Detail(field, event) for field, event in beside.items() if event is not None]
    return HttpError(WireError.DAMAGED, details or None, sentence=str(error))


def _of_http(error: web.HTTPException) -> HttpError:
    other = WireError.VALIDATION_FAILED if error.status < 500 else WireError.INTERNAL
    headers = {"Allow": error.headers["Allow"]} if "Allow" in error.headers else {}
    return HttpError(_BY_STATUS.get(error.status, other), headers=headers)
