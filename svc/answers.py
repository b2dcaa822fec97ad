"""The server's answers and the client's retry rules (protocol, section 7), without I/O."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

RETRIES: Final = 3
FIRST_WAIT: Final = 1.0
LONGEST_BACKOFF: Final = 300.0
"""Limit of the client's own backoff on 429; a longer wait that the server requests is respected."""

MAX_ANSWER_BYTES: Final = 4 * 1_048_576


@dataclass(frozen=True)
class Answer:
    """A parsed answer. `status` 0 means no answer, or one that violates the protocol. `wait` is in seconds."""

    status: int
    accepted: int = 0
    errors: tuple[dict[str, Any], ...] = ()
    wait: float = 0.0
    why: str = ""


class Fate(Enum):
    """The outcome of a batch."""

    DONE = "done"
    AGAIN = "again"
    REFUSED = "refused"
    GIVEN_UP = "given up"


@dataclass(frozen=True)
class AnswerDecision:
    """A batch's outcome; nothing may be sent for `wait` seconds."""

    fate: Fate
    wait: float = 0.0


def parse_answer(status: int, headers: Mapping[str, str], body: bytes, sent: int) -> Answer:
    """Parse the answer to a batch of `sent` events. One that violates the protocol gets `status` 0."""
    content = _object(body)
    if status == 202:
        return _accepted(content, sent)
    if status == 429:
        retry_after = _number((content or {}).get("retryAfterMs")) / 1000
        return Answer(429, wait=max(retry_after, _number(headers.get("Retry-After"))))
    if 500 <= status < 600:
        return Answer(status, wait=_number(headers.get("Retry-After")))
    if 400 <= status < 500:
        return Answer(status, why=json.dumps(content)[:500] if content else "")
    return Answer(0, why=f"status {status}")


def _accepted(content: dict[str, Any] | None, sent: int) -> Answer:
    if content is None:
        return Answer(0, why="202 without a JSON object")
    errors = content.get("errors") or []
    if not isinstance(errors, list):
        return Answer(0, why="202 whose errors are not a list")
    valid = tuple(
        e for e in errors if isinstance(e, dict) and type(e.get("index")) is int and 0 <= e["index"] < sent
    )
    return Answer(202, accepted=sent - len({error["index"] for error in valid}), errors=valid)


def _object(body: bytes) -> dict[str, Any] | None:
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def _number(value: object) -> float:
    """A positive finite number, or 0.0 for anything else (dates, negatives, infinities, None)."""
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return number if math.isfinite(number) and number > 0 else 0.0


class RetryPolicy:
    """The retry state of one batch.

    202 ends it. 429 is retried without limit, with exponential backoff and at least the requested wait. 5xx and no
    answer are retried after 1, 2 and 4 s. Any other answer ends it.
    """

    def __init__(self) -> None:
        self._failures = 0
        self._throttles = 0

    def after(self, answer: Answer) -> AnswerDecision:
        """The action after this answer."""
        if answer.status == 202:
            return AnswerDecision(Fate.DONE)
        if answer.status == 429:
            backoff = min(FIRST_WAIT * 2.0 ** min(self._throttles, 30), LONGEST_BACKOFF)
            self._throttles += 1
            return AnswerDecision(Fate.AGAIN, max(backoff, answer.wait))
        if answer.status and answer.status < 500:
            return AnswerDecision(Fate.REFUSED)
        if self._failures >= RETRIES:
            return AnswerDecision(Fate.GIVEN_UP, answer.wait)
        backoff = FIRST_WAIT * 2.0**self._failures
        self._failures += 1
        return AnswerDecision(Fate.AGAIN, max(backoff, answer.wait))
