"""The exception that ends a request with a declared error."""

from schemas.errors import Detail, WireError


class RequestError(Exception):
    """Ends a request. `reason` is a metrics label from a fixed set, never text from the client."""

    def __init__(
        self,
        error: WireError,
        reason: str,
        details: list[Detail] | None = None,
        retry_after_ms: int | None = None,
    ) -> None:
        super().__init__(error.code, reason)
        self.error = error
        self.reason = reason
        self.details = details
        self.retry_after_ms = retry_after_ms


def unavailable(reason: str) -> RequestError:
    """A failure of the edge (contract, section 2, points 1 and 9): the client may soon retry the same request."""
    return RequestError(WireError.UNAVAILABLE, reason, retry_after_ms=5000)
