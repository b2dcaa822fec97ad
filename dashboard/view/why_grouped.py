"""Why a stored event is in its group, in sentences."""

import msgspec
from msgspec import Raw

from grouping.fingerprint import fingerprint, why
from grouping.fingerprint.event_view import decode_identified


def why_grouped(event: Raw | None, rule: str, stored: str) -> list[str]:
    """Sentences on an event with a `stored` fingerprint; none where the event alone doesn't lead to it.

    That is so without a payload, and where a rule marked its frames.
    """
    if event is None:
        return []
    try:
        read = decode_identified(bytes(event))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return []
    is_computed = rule in {"stack", "message"}
    return [] if is_computed and fingerprint(read).hex != stored else why(read, rule)
