"""A request that can't be served as asked: one exception that carries what the wire says of it."""

from schemas.errors import Detail, WireError


class RequestError(Exception):
    """Ends a request. `reason` is for counting: one of a few words, never the sender's."""

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
    """Trouble of our own (contract, section 2, points 1 and 9): the client may send the same again, soon."""
    return RequestError(WireError.UNAVAILABLE, reason, retry_after_ms=5000)
