"""HTTP errors of the dashboard; domain errors of the layers below are mapped to them."""

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

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
    """An error response: code, invalid parts of the request, headers, and a sentence for the error page."""

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
    """Nothing has this id or name."""
    return HttpError(WireError.NOT_FOUND, sentence=sentence)


def invalid(field: str, message: str) -> HttpError:
    """One field of the request is invalid."""
    return HttpError(WireError.VALIDATION_FAILED, [Detail(field, message)])


def unavailable(sentence: str) -> HttpError:
    """A dependency doesn't answer; a retry may succeed soon."""
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


def http_error_of(error: Exception) -> HttpError | None:
    """The HTTP error for an expected exception; None for an unexpected one."""
    mapped = None
    match error:
        case HttpError():
            mapped = error
        case web.HTTPException() | web.RequestPayloadError() | HttpProcessingError():
            mapped = _of_aiohttp(error)
        case BadChange():
            mapped = HttpError(WireError.VALIDATION_FAILED, error.details)
        case ProjectsUnavailable():
            mapped = unavailable("projects can't be read or changed right now: Kafka doesn't answer")
        case ChangesUnavailable():
            mapped = unavailable(str(error))
        case ChangeRefused():
            mapped = HttpError(WireError.CONFLICT, sentence=str(error))
        case KeyReused():
            mapped = HttpError(
                WireError.CONFLICT, [Detail("Idempotency-Key", "was used for another request")]
            )
        case BadQuery():
            mapped = invalid(error.field, error.message)
        case QueryTooExpensive():
            mapped = invalid("query", f"reads too much: {error}")
        case DamagedPayload():
            mapped = _damaged(error)
        case NotFound():
            mapped = not_found(str(error))
        case StorageUnavailable():
            mapped = unavailable(f"events can't be read right now: {error}")
    return mapped


def _damaged(error: DamagedPayload) -> HttpError:
    """The details name the neighbouring events, so that clients can page past the damaged one."""
    event = error.detail
    neighbours = {"previousEventId": event.previous_event_id, "nextEventId": event.next_event_id}
    details = [Detail(field, neighbour) for field, neighbour in neighbours.items() if neighbour is not None]
    return HttpError(WireError.DAMAGED, details or None, sentence=str(error))


def _of_aiohttp(error: Exception) -> HttpError:
    if not isinstance(error, web.HTTPException):
        return invalid("body", "can't be parsed: it isn't what its headers say")
    default = WireError.VALIDATION_FAILED if error.status < 500 else WireError.INTERNAL
    headers = {"Allow": error.headers["Allow"]} if "Allow" in error.headers else {}
    return HttpError(_BY_STATUS.get(error.status, default), headers=headers)
